// The tables of vector semantics, one per encoding class, one set per host instruction set.
#pragma once

#include <cstddef>

#include "../insn.h"

namespace netra {

struct RowSpan {
  const Row* first;
  size_t count;
};

#define NETRA_VECTOR_TABLES(X) X(vop1) X(vop2) X(vop3) X(vopc) X(vop3p) X(lanes) X(salu_float) X(dot2) X(mfma) X(smfmac) X(cvt) \
  X(wmma)

#define NETRA_DECLARE(cls) RowSpan cls##_rows();
namespace host_base { NETRA_VECTOR_TABLES(NETRA_DECLARE) }
namespace host_v3 { NETRA_VECTOR_TABLES(NETRA_DECLARE) }
#undef NETRA_DECLARE

}  // namespace netra
