// Which lane DPP reads.
#pragma once

#include "insn.h"

namespace netra {

// The lane that DPP reads for lane l; -1 when the control names none.
int dpp_source(const Dpp& d, int l, int lanes);

}  // namespace netra
