#include "elements.h"
#include "rows.h"

#define NETRA_CLASS Class::vop1
namespace netra::NETRA_HOST_NS {
namespace {

uint64_t pair(float lo, float hi) { return f32_bits(lo) | static_cast<uint64_t>(f32_bits(hi)) << 32; }

#define NETRA_OP NETRA_OP_STRUCT
#define NETRA_CLAMP NETRA_CLAMP_STRUCT
#include "../sem/vop1.inc"
#undef NETRA_OP
#undef NETRA_CLAMP

#define NETRA_OP NETRA_OP_ROW
#define NETRA_CLAMP NETRA_CLAMP_ROW
constexpr Row kRows[] = {
#include "../sem/vop1.inc"
};

}  // namespace

RowSpan vop1_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra::NETRA_HOST_NS
