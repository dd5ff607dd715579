#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

// gfx9's v_cmpx writes the mask operand and EXEC; gfx11's has EXEC as its only destination, which
// the binder makes an operand (kExecOperand), so that the compare itself writes it.
void cmpx(Wave& w, const Insn& i) {
  i.row->base(w, i);
  w.set_exec(read_mask(w, i.op[0]));
}

template <class Op>
constexpr Row cmp_row(const char* name) {
  return valu_row<Op>(name, both, Class::vopc);
}
template <class Op>
constexpr Row cmpx_row(const char* name, uint8_t archs) {
  Row r = cmp_row<Op>(name);
  r.archs = archs;
  r.flags |= kWritesExec | (archs == gfx11 ? kExecOperand : 0u);
  r.base = r.execute;
  if (archs == gfx9) r.execute = &cmpx;
  return r;
}

#define CMP(N, T0, T1, F, ...) \
  NETRA_OP_STRUCT(both, v_cmp_##N, Nil, 1, T0, T1, Nil, 0, 0, 0, F, C = (__VA_ARGS__))
#include "../sem/vopc.inc"
#undef CMP

#define CMP(N, ...)                                                                        \
  cmp_row<v_cmp_##N##_both>("v_cmp_" #N), cmpx_row<v_cmp_##N##_both>("v_cmpx_" #N, gfx9), \
      cmpx_row<v_cmp_##N##_both>("v_cmpx_" #N, gfx11),
constexpr Row kRows[] = {
#include "../sem/vopc.inc"
};

}  // namespace

RowSpan vopc_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra::NETRA_HOST_NS
