// Which lanes of a VGPR an instruction reads or writes.
#pragma once

#include <bit>
#include <string_view>

#include "../wave.h"
#include "facts.h"

namespace netra {

struct LaneSets {
  uint64_t read = 0, written = 0;
};

// By EXEC, except where the instruction names one lane or takes all. A source lane that is not in
// EXEC counts as read where the instruction fetches it all the same (fi).
inline LaneSets lanes_touched(const Wave& w, const Facts& f) {
  const uint64_t exec = w.exec();
  const Insn& i = *f.insn;
  if (f.is(kIsMfma | kIsWmma)) return {w.lane_mask, w.lane_mask};
  if (f.is(kIsLaneRead)) {
    unsigned lane = exec ? static_cast<unsigned>(std::countr_zero(exec)) : 0;
    if (i.row && i.row->slots > 2) lane = read_scalar(w, i.op[2]) & (w.lanes - 1);
    return {1ull << lane, 0};
  }
  if (f.is(kIsLaneWrite)) return {0, 1ull << (read_scalar(w, i.op[2]) & (w.lanes - 1))};
  const bool permute16 = f.is(kIsPermlane) && i.row && i.row->slots > 2;
  if (i.dpp.fi || (f.is(kIsPermlane) && !permute16) || (permute16 && i.op_sel & 1)) return {w.lane_mask, exec};
  return {exec, exec};
}

}  // namespace netra
