#include "occupancy.h"

#include <algorithm>

namespace netra {
namespace {

constexpr uint32_t kSgprFile = 800;   // of a gfx950 SIMD

uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Occupancy occupancy(const Kernel& kernel, const Target& target, uint32_t lds_bytes,
                    uint32_t waves_per_group) {
  const Descriptor& d = kernel.descriptor;
  const bool cdna = target.wave_size == 64;
  // gfx1151's file counts wave32 registers; a wave64 takes two of them for each of its own.
  const uint32_t file = cdna || d.wave32 ? target.vgpr_file : target.vgpr_file / 2;
  const uint32_t granule = d.wave32 ? target.vgpr_granule32 : target.vgpr_granule64;
  Occupancy o;
  o.by_vgprs = file / std::max(1u, round_up(d.vgprs_allocated, granule));
  if (cdna && d.sgprs_allocated != 0) o.by_sgprs = kSgprFile / d.sgprs_allocated;
  if (lds_bytes != 0 && lds_bytes <= target.lds_bytes) {
    // A gfx1151 workgroup processor has 128 KiB for its four SIMDs, of which one workgroup can
    // have half; a gfx950 compute unit has what a workgroup can have.
    const uint32_t pool = cdna ? target.lds_bytes : 2 * target.lds_bytes;
    const uint32_t groups = pool / round_up(lds_bytes, target.lds_granule);
    o.by_lds = std::max(1u, groups * waves_per_group / 4);
  }
  o.waves = std::min(target.max_waves_per_simd, o.by_vgprs);
  for (const uint32_t limit : {o.by_sgprs, o.by_lds})
    if (limit != 0) o.waves = std::min(o.waves, limit);
  return o;
}

}  // namespace netra
