#include "rows.h"

#define NETRA_CLASS Class::vop2
namespace netra::NETRA_HOST_NS {
namespace {

#define NETRA_OP NETRA_OP_STRUCT
#define NETRA_CLAMP NETRA_CLAMP_STRUCT
#include "../sem/vop2.inc"
#undef NETRA_OP
#undef NETRA_CLAMP

#define NETRA_OP NETRA_OP_ROW
#define NETRA_CLAMP NETRA_CLAMP_ROW
constexpr Row kRows[] = {
#include "../sem/vop2.inc"
};

}  // namespace

RowSpan vop2_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra::NETRA_HOST_NS
