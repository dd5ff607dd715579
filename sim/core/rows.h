// The tables of everything that is not a vector ALU instruction, one per encoding class.
#pragma once

#include "exec/table.h"
#include "wave.h"

namespace netra {

#define NETRA_SCALAR_TABLES(X) X(sop1) X(sop2) X(sopc) X(sopk) X(sopp) X(smem) X(ds) X(flat) X(mubuf) X(mtbuf)

#define NETRA_DECLARE(cls) RowSpan cls##_rows();
NETRA_SCALAR_TABLES(NETRA_DECLARE)
#undef NETRA_DECLARE

}  // namespace netra
