// VOP3P: packed pairs of halves. op_sel picks each source's half for the low result, op_sel_hi for
// the high one; neg_lo and neg_hi flip signs per result.
#include <cstring>

#include "../switches.h"
#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

struct Half {
  int source, result;         // result: 0 low, 1 high
  bool neg(const Insn& i) const { return (result ? i.neg_hi : i.neg_lo) >> source & 1; }
  bool high(const Insn& i) const { return (result ? i.op_sel_hi : i.op_sel) >> source & 1; }
};

// Source `source` of a packed instruction as whole registers: through DPP it would be permuted.
Lanes registers(Wave& w, const Insn& i, const Form& f, int source, bool two, uint32_t* tmp) {
  if (f.acc && source == 2) return fetch_plain(w, indexed(w, i, i.op[0], kRoleDst, 1), false, tmp);
  return fetch_plain(w, indexed(w, i, i.op[1 + source], source, two ? 2 : 1), two, tmp);
}

// The two halves of f16, i16 or u16 rows, in the low 16 bits of rows of their own.
void packed_run(Wave& w, const Insn& i, const Form& f) {
  sync_exec(w);
  alignas(64) uint32_t s[3][64], tmp[3][64 + 64], half[2][128];
  const int sources = f.s2 == Type::none ? 2 : 3, lanes = static_cast<int>(w.lanes);
  Lanes whole[3];
  for (int k = 0; k < sources; ++k) whole[k] = registers(w, i, f, k, false, tmp[k]);
  const uint32_t index = indexed(w, i, i.op[0], kRoleDst, 1).index;
  if (w.state == State::faulted) return;
  for (int h = 0; h < 2; ++h) {
    for (int k = 0; k < sources; ++k) {
      // The addend of v_pk_fmac_f16 is D, half by half.
      const Half part{k, h};
      const bool own = f.acc && k == 2;
      const int shift = (own ? h : part.high(i)) ? 16 : 0;
      const uint32_t flip = !own && part.neg(i) ? 0x8000 : 0;
      for (int l = 0; l < lanes; ++l) s[k][l] = (whole[k].lo[l] >> shift & 0xffff) ^ flip;
      if (flushes_inputs(w, f.flags, f.d)) flush_inputs(f.d, s[k], nullptr, lanes);
    }
    Job job;
    job.a = {s[0], nullptr}, job.b = {s[1], nullptr}, job.c = {s[2], nullptr};
    job.out = half[h];
    job.lanes = lanes;
    run_body(w, i, f, job);
    if (i.clamp && is_float(f.d)) clamp_rows(w, f.d, half[h], nullptr);
  }
  for (int l = 0; l < lanes; ++l) half[0][l] = (half[0][l] & 0xffff) | half[1][l] << 16;
  merge(w, index, half[0], false);
}

// gfx950's pairs of f32 (and v_pk_mov_b32): op_sel picks the dword of each source pair for the low
// result, op_sel_hi for the high one. An inline constant or literal is one dword, read as both.
void pairs_run(Wave& w, const Insn& i, const Form& f) {
  sync_exec(w);
  alignas(64) uint32_t tmp[3][128], s[3][64], out[128];
  const int sources = f.s2 == Type::none ? 2 : 3, lanes = static_cast<int>(w.lanes);
  const bool move = f.flags & kPackedMove;
  const uint32_t* dword[3][2];
  for (int k = 0; k < sources; ++k) {
    const Lanes x = registers(w, i, f, k, true, tmp[k]);
    dword[k][0] = x.lo;
    dword[k][1] = i.op[1 + k].kind == Kind::constant ? x.lo : x.hi;
  }
  const uint32_t index = indexed(w, i, i.op[0], kRoleDst, 2).index;
  if (w.state == State::faulted) return;
  for (int h = 0; h < 2; ++h) {
    Job job;
    Lanes* source[3] = {&job.a, &job.b, &job.c};
    for (int k = 0; k < sources; ++k) {
      const Half part{k, h};
      const uint32_t* from = dword[k][move ? i.op_sel >> k & 1 : part.high(i)];
      const bool flush = flushes_inputs(w, f.flags, Type::f32);
      if (part.neg(i) || flush) {
        const uint32_t flip = part.neg(i) ? 0x80000000u : 0;
        for (int l = 0; l < lanes; ++l) s[k][l] = from[l] ^ flip;
        if (flush) flush_inputs(Type::f32, s[k], nullptr, lanes);
        from = s[k];
      }
      *source[k] = {from, nullptr};
    }
    if (move && h) job.a = job.b;
    job.out = out + 64 * h;
    job.lanes = lanes;
    run_body(w, i, f, job);
    if (i.clamp && is_float(f.d)) clamp_rows(w, f.d, job.out, nullptr);
  }
  merge(w, index, out, true);
}

template <class Op>
void packed(Wave& w, const Insn& i) { packed_run(w, i, kForm<Op>); }
template <class Op>
void pairs(Wave& w, const Insn& i) { pairs_run(w, i, kForm<Op>); }

// A packed slot is a whole register; the element type fixes how an inline constant expands.
template <class Op>
constexpr Row packed_row(const char* name, uint8_t archs) {
  Row r;
  r.name = name;
  r.cls = Op::kAcc ? Class::vop2 : Class::vop3p;
  r.archs = archs;
  r.execute = &packed<Op>;
  r.mods = kModOpSel | kModOpSelHi | kModNegLo | kModNegHi;
  if (is_float(Op::D::type) || (Op::kFlags & kClampRow)) r.mods |= kModClamp;
  if (!is_float(Op::D::type)) r.mods &= ~(kModNegLo | kModNegHi);
  if (Op::kAcc) r.mods = 0;
  r.flags = Op::kFlags | kPacked;
  r.slot[r.slots++] = {Type::b32, Op::kAcc ? kReadWrite : kWrite, 0};
  r.slot[r.slots++] = {Op::S0::type, kRead, 0};
  r.slot[r.slots++] = {Op::S1::type, kRead, 0};
  if (Op::S2::type != Type::none && !Op::kAcc) r.slot[r.slots++] = {Op::S2::type, kRead, 0};
  return r;
}
template <class Op>
constexpr Row pairs_row(const char* name) {
  Row r;
  r.name = name;
  r.cls = Class::vop3p;
  r.archs = gfx9;
  r.execute = &pairs<Op>;
  r.mods = kModOpSel | kModOpSelHi | kModNegLo | kModNegHi | kModClamp;
  r.flags = Op::kFlags;
  r.slot[r.slots++] = {Type::pk32, kWrite, 0};
  r.slot[r.slots++] = {Type::pk32, kRead, 0};
  r.slot[r.slots++] = {Type::pk32, kRead, 0};
  if (Op::S2::type != Type::none) r.slot[r.slots++] = {Type::pk32, kRead, 0};
  return r;
}
template <class Op>
constexpr Row dot_row(const char* name, uint8_t archs) {
  Row r = valu_row<Op>(name, archs, Class::vop3p);
  r.mods = r.slot[1].type == Type::b32 ? kModNegLo | kModOpSel | kModOpSelHi | kModDpp | kModDpp8 | kModBoundCtrl : 0;
  if (Op::kFlags & kClampRow) r.mods |= kModClamp;
  r.flags |= kPacked;
  return r;
}

// The halves of a dot product's source that op_sel and op_sel_hi pick.
uint32_t halves(uint32_t x, const Insn& i, int source) {
  const uint32_t lo = i.op_sel >> source & 1 ? x >> 16 : x & 0xffff;
  const uint32_t hi = i.op_sel_hi >> source & 1 ? x >> 16 : x & 0xffff;
  return lo | hi << 16;
}
int64_t dot2_u16(uint32_t a, uint32_t b) {
  return static_cast<int64_t>(a & 0xffff) * (b & 0xffff) + static_cast<int64_t>(a >> 16) * (b >> 16);
}

// v_fma_mix: each source is f32, or the half op_sel[k] as f16 where op_sel_hi[k] is set. The f16
// results of gfx950 are rounded once from the exact sum; on gfx1151 the f32 result is rounded
// again, which is what its manual and compilers have (switch fma_mix).
template <int kHalf>   // -1: the result is f32
void mix(Wave& w, const Insn& i) {
  sync_exec(w);
  alignas(64) uint32_t tmp[128], out[128];
  alignas(64) float s[3][64];
  const int lanes = static_cast<int>(w.lanes);
  for (int k = 0; k < 3; ++k) {
    const Operand& o = i.op[1 + k];
    Lanes x = fetch_plain(w, indexed(w, i, o, k, 1), false, tmp);
    if (k == 0 && i.dpp.ctrl != DppCtrl::none) {
      permute(w, i, x, false, tmp);
      x = {tmp, tmp};
    }
    const bool half = i.op_sel_hi >> k & 1, high = i.op_sel >> k & 1;
    const Type type = half ? Type::f16 : Type::f32;
    alignas(64) uint32_t raw[64];
    for (int l = 0; l < lanes; ++l) raw[l] = half ? x.lo[l] >> (high ? 16 : 0) & 0xffff : x.lo[l];
    if (flushes_inputs(w, kFpFlushIn, type)) flush_inputs(type, raw, nullptr, lanes);
    for (int l = 0; l < lanes; ++l) {
      float v = half ? f16_to_f32(raw[l]) : as_f32(raw[l]);
      if (o.abs) v = std::fabs(v);
      s[k][l] = o.neg ? -v : v;
    }
  }
  const uint32_t index = indexed(w, i, i.op[0], kRoleDst, 1).index;
  if (w.state == State::faulted) return;
  constexpr Type kType = kHalf < 0 ? Type::f32 : Type::f16;
  const bool once = kHalf >= 0 && (!w.gfx11 || switches().fma_mix_once);
  Rounding r = rounding_of(w, kType);
  r.saturate = w.mode & kModeFp16Ovfl;
  for (int l = 0; l < lanes; ++l) {
    const float a = s[0][l], b = s[1][l], c = s[2][l];
    float v = once           ? static_cast<float>(fma_soft(a, b, c, 0, kF16, r))
              : w.plain_mode ? fma1(a, b, c)
                             : static_cast<float>(fma_soft(a, b, c, 0, kF32, rounding_of(w, Type::f32)));
    if (is_nan(v))
      v = (is_inf(a) && b == 0) || (a == 0 && is_inf(b)) ? kInvalid
          : is_nan(a) ? quiet(a) : is_nan(b) ? quiet(b) : is_nan(c) ? quiet(c) : kInvalid;
    out[l] = kHalf < 0 ? f32_bits(v) : f16_rounded(v, r.round, r.flush, r.saturate);
  }
  if (i.clamp) clamp_rows(w, kType, out, nullptr);
  uint32_t* d = w.row(index);
  const uint64_t written = write_lanes(w, i);
  for (int l = 0; l < lanes; ++l) {
    if (!(written >> l & 1)) continue;
    d[l] = kHalf < 0 ? out[l] : kHalf ? (d[l] & 0xffff) | out[l] << 16 : (d[l] & 0xffff0000) | (out[l] & 0xffff);
  }
}
template <int kHalf>
constexpr Row mix_row(const char* name) {
  Row r;
  r.name = name;
  r.cls = Class::vop3p;
  r.execute = &mix<kHalf>;
  r.mods = kModOpSel | kModOpSelHi | kModNeg | kModAbs | kModClamp | kModDpp | kModDpp8 | kModBoundCtrl;
  r.flags = kA | kMixed;
  r.slots = 4;
  r.slot[0] = {Type::b32, kHalf < 0 ? kWrite : kReadWrite, 0};
  for (int k = 1; k < 4; ++k) r.slot[k] = {Type::f32, kRead, 0};
  return r;
}

#define NETRA_CLASS Class::vop3p
#define NETRA_OP NETRA_OP_STRUCT
#define NETRA_CLAMP NETRA_CLAMP_STRUCT
#include "../sem/vop3p.inc"
#include "../sem/vop3p_dot.inc"
#include "../sem/vop3p_f32.inc"
#undef NETRA_OP
#undef NETRA_CLAMP

#define NETRA_OP(A, N, ...) packed_row<N##_##A>(#N, A),
#define NETRA_CLAMP(A, N, ...) packed_row<N##_clamp_##A>(#N, A),
constexpr Row kRows[] = {
#include "../sem/vop3p.inc"
#undef NETRA_OP
#undef NETRA_CLAMP
#define NETRA_OP(A, N, ...) dot_row<N##_##A>(#N, A),
#define NETRA_CLAMP(A, N, ...) dot_row<N##_clamp_##A>(#N, A),
#include "../sem/vop3p_dot.inc"
#undef NETRA_OP
#define NETRA_OP(A, N, ...) pairs_row<N##_##A>(#N),
#include "../sem/vop3p_f32.inc"
    mix_row<-1>("v_fma_mix_f32"),
    mix_row<0>("v_fma_mixlo_f16"),
    mix_row<1>("v_fma_mixhi_f16"),
};

}  // namespace

RowSpan vop3p_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra::NETRA_HOST_NS
