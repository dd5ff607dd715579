// Scalar floats of RDNA3.5, through the loops and the MODE rules of the vector ALU: a value is
// spread over the fewest lanes that a loop takes, and one of them is the result.
#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

constexpr int kLanes = 32;

const uint32_t* spread(const Wave& w, const Form& f, Type type, const Operand& o, uint32_t* row) {
  uint32_t x = read_scalar(w, o);
  if (is_16bit(type)) x &= 0xffff;
  for (int l = 0; l < kLanes; ++l) row[l] = x;
  if (flushes_inputs(w, f.flags, type)) flush_inputs(type, row, nullptr, kLanes);
  return row;
}

void run(Wave& w, const Insn& i, const Form& f) {
  alignas(64) uint32_t rows[3][64], out[64], carry[64];
  Job job;
  int n = f.d != Type::none;
  job.lanes = kLanes;
  job.a.lo = spread(w, f, f.s0, i.op[n++], rows[0]);
  if (f.s1 != Type::none) job.b.lo = spread(w, f, f.s1, i.op[n++], rows[1]);
  if (f.s2 != Type::none) job.c.lo = spread(w, f, f.s2, f.acc ? i.op[0] : i.op[n], rows[2]);
  job.out = out;
  job.carry_out = carry;
  run_body(w, i, f, job);
  if (f.c) w.scc = carry[0];
  else write_scalar(w, i.op[0], is_16bit(f.d) ? out[0] & 0xffff : out[0]);   // the high half is 0
}

// The high half as f16, which is exact in f32.
float high_f16(uint32_t x, const Wave& w) {
  uint32_t h = x >> 16;
  if (flushes_inputs(w, kFpFlushIn, Type::f16)) flush_inputs(Type::f16, &h, nullptr, 1);
  return quieted(f16_to_f32(h));
}

template <class Op>
void scalar(Wave& w, const Insn& i) { run(w, i, kForm<Op>); }

template <class Op>
constexpr Row scalar_row(const char* name, uint8_t archs) {
  Row r = valu_row<Op>(name, archs, Class::sop2);
  r.execute = &scalar<Op>;
  r.mods = 0;
  if (Op::C) {
    r.cls = Class::sopc;
    r.slots = 0;
    r.slot[r.slots++] = {Op::S0::type, kRead, 0};
    r.slot[r.slots++] = {Op::S1::type, kRead, 0};
    r.flags |= kWritesScc;
  } else if (Op::S1::type == Type::none) {
    r.cls = Class::sop1;
  }
  return r;
}

#define NETRA_OP NETRA_OP_STRUCT
#include "../sem/salu_float.inc"
#undef NETRA_OP
#define NETRA_OP(A, N, ...) scalar_row<N##_##A>(#N, A),
constexpr Row kRows[] = {
#include "../sem/salu_float.inc"
};

}  // namespace

RowSpan salu_float_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra::NETRA_HOST_NS
