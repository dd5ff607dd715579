#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

// gfx9's v_cmpx writes the mask operand and EXEC; gfx11's has EXEC as its only destination, which
// the binder makes an operand (kExecOperand), so that the compare itself writes it.
void cmpx(Wave& w, const Insn& i) {
  i.row->base(w, i);
  w.set_exec(read_mask(w, i.op[0]));
}

// The rows of one compare: v_cmp where it exists, and v_cmpx of each of those targets (an empty
// row, which no target has, fills the place of the other).
template <class Op>
constexpr Row cmp_row(const char* name, uint8_t archs) {
  return valu_row<Op>(name, archs, Class::vopc);
}
template <class Op>
constexpr Row cmpx_row(const char* name, uint8_t archs) {
  Row r = cmp_row<Op>(name, archs);
  r.flags |= kWritesExec | (archs == gfx11 ? kExecOperand : 0u);
  r.base = r.execute;
  if (archs == gfx9) r.execute = &cmpx;
  return r;
}

#define CMP(A, N, T0, T1, F, ...) \
  NETRA_OP_STRUCT(A, v_cmp_##N, Nil, 1, T0, T1, Nil, 0, 0, 0, F, C = (__VA_ARGS__))
#include "../sem/vopc.inc"
#undef CMP

#define CMP(A, N, ...)                                     \
  cmp_row<v_cmp_##N##_##A>("v_cmp_" #N, A),                \
      cmpx_row<v_cmp_##N##_##A>("v_cmpx_" #N, A & gfx9),   \
      cmpx_row<v_cmp_##N##_##A>("v_cmpx_" #N, A & gfx11),
constexpr Row kRows[] = {
#include "../sem/vopc.inc"
};

}  // namespace

RowSpan vopc_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra::NETRA_HOST_NS
