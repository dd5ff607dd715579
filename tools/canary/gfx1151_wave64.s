// gfx1151_wave64.s - what a kernel of 64 lanes looks like on gfx1151.

        .amdgcn_target "amdgcn-amd-amdhsa--gfx1151"
        .text
start:
        s_and_saveexec_b64 s[12:13], vcc
        s_cbranch_execz .Lend
        v_cmp_gt_u32    vcc, s4, v0
        v_cmp_gt_u32    s[14:15], s4, v0
        v_cndmask_b32   v7, v0, v1, s[12:13]
        v_add_co_ci_u32 v6, vcc, 0, v1, vcc
        v_readlane_b32  s16, v0, 63
.Lend:
        s_endpgm
