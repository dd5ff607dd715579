// How undefined bytes pass through an instruction.
//
// A copy or a selection of bits hands them on in silence, since compilers move registers and pad
// vectors that nobody looks at. Arithmetic on a value of which no byte is defined is a use, and a
// use is what a finding is about; where a part is defined, the undefined part spreads upwards.
#pragma once

#include <cstdint>

#include "facts.h"

namespace netra {

enum class Flow : uint8_t {
  use,       // arithmetic, compares, branches, matrix instructions
  copy,      // registers move as they are
  select,    // v_cndmask: the source that the mask picks
  bits,      // each byte of the result from some bytes of the sources
  lanes,     // values change lanes
  wide,      // sums and shifts of 64-bit integers, whose halves are one number
};

Flow flow_of(const Insn& i);

// The undefined bytes of one dword of a result, from those of the dwords of its sources in the
// order of the operands: `and` and shifts with a constant, v_perm and v_bfe know which bytes count.
uint8_t combined(const Insn& i, const uint8_t* sources, int count);
// The undefined bytes of a 64-bit result (bit 0: the lowest), from those of the operand in `slot`.
uint8_t combined_wide(const Insn& i, int slot, uint8_t bytes);
// Whether it is arithmetic, so that an undefined source is a use.
bool is_wide_sum(const Insn& i);
// The lowest undefined byte and all above it.
uint8_t spread_up(uint8_t bytes);

}  // namespace netra
