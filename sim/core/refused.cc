// Instructions that are left out on purpose, and why: what a kernel that reaches one is told.
#include "program.h"

namespace netra {
namespace {

struct Reason {
  const char* prefix;
  const char* why;
};
constexpr Reason kReasons[] = {
    {"image_bvh", "ray tracing is not simulated"},
    {"ds_bvh_stack", "ray tracing is not simulated"},
    {"image_", "images are not simulated"},
    {"ds_gws_", "global wave sync is not simulated"},
    {"ds_ordered_count", "global data share is not simulated"},
    {"ds_add_gs_reg", "geometry registers are not simulated"},
    {"ds_sub_gs_reg", "geometry registers are not simulated"},
    {"lds_direct_load", "graphics attributes in LDS are not simulated"},
    {"lds_param_load", "graphics attributes in LDS are not simulated"},
    {"exp", "exports to the graphics pipeline are not simulated"},
    {"s_dcache_discard", "what it leaves in memory depends on the scalar cache, which is not simulated"},
    {"s_cbranch_g_fork", "the fork stack is not simulated, and no compiler uses it"},
    {"s_cbranch_i_fork", "the fork stack is not simulated, and no compiler uses it"},
    {"s_cbranch_join", "the fork stack is not simulated, and no compiler uses it"},
    {"s_rfe", "it returns from a trap handler, and there is none"},
    {"s_sendmsghalt", "it halts the wave, and there is no debugger to go on"},
    {"s_subvector_loop_", "the loop over the halves of a wave is not simulated, and no compiler uses it"},
    {"v_interp_p10_", "graphics attributes are not simulated"},
    {"v_interp_p2_", "graphics attributes are not simulated"},
    {"v_illegal", "it is the illegal instruction by definition"},
    {"v_mfma_ld_scale_b32", "it is the first half of v_mfma_scale and means nothing alone"},
    {"v_screen_partition_4se_b32", "it belongs to graphics; its table is not published"},
};

}  // namespace

const char* reason_left_out(const std::string& mnemonic) {
  for (const Reason& r : kReasons)
    if (mnemonic.rfind(r.prefix, 0) == 0) return r.why;
  return nullptr;
}

}  // namespace netra
