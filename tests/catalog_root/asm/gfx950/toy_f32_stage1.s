// toy_f32_stage1 - a file for the tests of the catalog; it is never assembled
