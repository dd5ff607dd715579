// Instructions that are left out on purpose, and why: what a kernel that reaches one is told.
#include "program.h"

namespace netra {
namespace {

struct Reason {
  const char* prefix;
  const char* part;           // must occur too
  const char* why;
};
constexpr Reason kReasons[] = {
    {"image_bvh", "", "ray tracing is not simulated"},
    {"ds_bvh_stack", "", "ray tracing is not simulated"},
    {"image_", "", "images are not simulated"},
    {"tbuffer_", "", "typed buffer accesses convert formats, which is not simulated"},
    {"buffer_", "_format", "typed buffer accesses convert formats, which is not simulated"},
    {"ds_gws_", "", "global wave sync is not simulated"},
    {"ds_ordered_count", "", "global data share is not simulated"},
    {"ds_add_gs_reg", "", "geometry registers are not simulated"},
    {"ds_sub_gs_reg", "", "geometry registers are not simulated"},
    {"lds_direct_load", "", "graphics attributes in LDS are not simulated"},
    {"lds_param_load", "", "graphics attributes in LDS are not simulated"},
    {"s_dcache_discard", "", "what it leaves in memory depends on the scalar cache, which is not simulated"},
};

}  // namespace

const char* reason_left_out(const std::string& mnemonic) {
  for (const Reason& r : kReasons)
    if (mnemonic.rfind(r.prefix, 0) == 0 && mnemonic.find(r.part) != std::string::npos) return r.why;
  return nullptr;
}

}  // namespace netra
