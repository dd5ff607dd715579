// Hardware registers (s_getreg / s_setreg) and jumps to computed addresses.
#pragma once

#include "wave.h"

namespace netra {

void getreg(Wave& w, const Insn& i);
void setreg(Wave& w, const Insn& i);
Row hwreg_row(const char* name, Execute execute, bool get);

// The roles of gpr_idx(SRC0,SRC1,SRC2,DST) in an instruction's text, as bits.
uint32_t gpr_idx_roles(const Insn& i);

// Continues at a loaded address; a fault when no instruction starts there.
void jump(Wave& w, const Insn& i, uint64_t pc);

}  // namespace netra
