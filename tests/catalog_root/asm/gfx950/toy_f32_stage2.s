// toy_f32_stage2 - a file for the tests of the catalog; it is never assembled
