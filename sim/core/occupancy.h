// How many waves of a kernel a SIMD can hold, and what limits it.
#pragma once

#include <cstdint>

#include "code_object.h"
#include "machine.h"

namespace netra {

// Waves on one SIMD. A limit of 0 is one that does not apply: no LDS, or a target whose scalar
// registers are never short.
struct Occupancy {
  uint32_t waves = 0;         // the least of the limits
  uint32_t by_vgprs = 0, by_sgprs = 0, by_lds = 0;
};
Occupancy occupancy(const Kernel& kernel, const Target& target, uint32_t lds_bytes,
                    uint32_t waves_per_group);

}  // namespace netra
