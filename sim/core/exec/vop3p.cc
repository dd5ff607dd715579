// VOP3P: packed pairs of halves. op_sel picks each source's half for the low result, op_sel_hi for
// the high one; neg_lo and neg_hi flip signs per result.
#include <cstring>

#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

// One half of one source, in the low 16 bits of a row.
void fetch_half(const Wave& w, const Insn& i, int slot, int source, bool high_result, Type type,
                uint32_t* out) {
  uint32_t tmp[128];
  const Lanes x = fetch_plain(w, i.op[slot], false, tmp);
  const uint8_t sel = high_result ? i.op_sel_hi : i.op_sel, neg = high_result ? i.neg_hi : i.neg_lo;
  const int shift = sel >> source & 1 ? 16 : 0;
  const uint32_t flip = neg >> source & 1 ? 0x8000 : 0;
  for (uint32_t l = 0; l < w.lanes; ++l) out[l] = (x.lo[l] >> shift & 0xffff) ^ flip;
  if ((i.row->flags & kFpFlushIn) && type == Type::f16 && !(denorm_mode(w.mode, type) & 1))
    for (uint32_t l = 0; l < w.lanes; ++l)
      if (!(out[l] & 0x7c00)) out[l] &= 0x8000;
}

template <class Op>
void packed(Wave& w, const Insn& i) {
  using D = typename Op::D;
  using S0 = typename Op::S0;
  using S1 = typename Op::S1;
  using S2 = typename Op::S2;
  alignas(64) uint32_t s[3][64];
  alignas(64) uint32_t half[2][128];
  sync_exec(w);
  const int lanes = static_cast<int>(w.lanes);
  for (int h = 0; h < 2; ++h) {
    fetch_half(w, i, 1, 0, h, S0::type, s[0]);
    fetch_half(w, i, 2, 1, h, S1::type, s[1]);
    if constexpr (S2::type != Type::none) fetch_half(w, i, 3, 2, h, S2::type, s[2]);
    const auto loop = [&] {
      for (int l = 0; l < lanes; ++l) {
        typename D::value dv{};
        bool c = false;
        Op::body(w, l, dv, c, S0::get(s[0], nullptr, l), S1::get(s[1], nullptr, l),
                 S2::get(s[2], nullptr, l), false);
        D::put(half[h], nullptr, l, dv);
      }
    };
    if (!w.plain_mode) {
      const FpScope scope(w.mode, D::type);
      loop();
    } else {
      loop();
    }
    if constexpr (D::type == Type::f16) {
      narrow(w, Type::f16, half[h], !w.plain_mode);
      if (i.clamp)
        for (int l = 0; l < lanes; ++l) {
          const float x = f16_to_f32(half[h][l]);
          half[h][l] = f32_to_f16(is_nan(x) ? (w.mode & kModeDx10Clamp ? 0.0f : x)
                                            : x <= 0 ? 0.0f : x > 1 ? 1.0f : x);
        }
    }
  }
  for (int l = 0; l < lanes; ++l) half[0][l] = (half[0][l] & 0xffff) | half[1][l] << 16;
  merge(w, i.op[0].index, half[0], false);
}

template <class Op>
constexpr Row packed_row(const char* name, uint8_t archs, Class cls) {
  Row r;
  r.name = name;
  r.cls = cls;
  r.archs = archs;
  r.execute = &packed<Op>;
  r.mods = kModOpSel | kModOpSelHi | kModNegLo | kModNegHi | kModClamp;
  r.flags = Op::kFlags | kPacked;
  r.slot[r.slots++] = {Type::b32, kWrite, 0};
  // A packed slot is a whole register; the element type fixes how an inline constant expands.
  r.slot[r.slots++] = {Op::S0::type, kRead, 0};
  r.slot[r.slots++] = {Op::S1::type, kRead, 0};
  if (Op::S2::type != Type::none) r.slot[r.slots++] = {Op::S2::type, kRead, 0};
  return r;
}

// gfx950's pairs of f32 (and v_pk_mov_b32): op_sel picks the dword of each source pair for the low
// result, op_sel_hi for the high one. An inline constant or literal is one dword, read as both.
template <class Op>
void packed32(Wave& w, const Insn& i) {
  using S2 = typename Op::S2;
  constexpr int kSources = S2::type == Type::none ? 2 : 3;
  alignas(64) uint32_t tmp[3][128];
  alignas(64) uint32_t out[128];
  sync_exec(w);
  const int lanes = static_cast<int>(w.lanes);
  const uint32_t* dword[3][2];
  for (int k = 0; k < kSources; ++k) {
    const Lanes x = fetch_plain(w, i.op[1 + k], true, tmp[k]);
    dword[k][0] = x.lo;
    dword[k][1] = i.op[1 + k].kind == Kind::constant ? x.lo : x.hi;
  }
  for (int h = 0; h < 2; ++h) {
    const uint8_t sel = h ? i.op_sel_hi : i.op_sel, neg = h ? i.neg_hi : i.neg_lo;
    const uint32_t* s[3] = {};
    uint32_t flip[3] = {};
    for (int k = 0; k < kSources; ++k) {
      // v_pk_mov_b32 takes its low result from S0 and its high one from S1, both by op_sel.
      const uint8_t by = Op::kFlags & kPackedMove ? i.op_sel : sel;
      s[k] = dword[k][by >> k & 1];
      flip[k] = neg >> k & 1 ? 0x80000000u : 0;
    }
    const bool flush = (Op::kFlags & kFpFlushIn) && !(denorm_mode(w.mode, Type::f32) & 1);
    const auto value = [&](int k, int l) {
      uint32_t x = s[k][l] ^ flip[k];
      if (flush && !(x & 0x7f800000)) x &= 0x80000000;
      return x;
    };
    const auto loop = [&] {
      for (int l = 0; l < lanes; ++l) {
        float dv = 0;
        bool c = false;
        const float a = as_f32(value(0, l)), b = as_f32(value(1, l));
        float e = 0;
        if constexpr (kSources == 3) e = as_f32(value(2, l));
        Op::body(w, h, dv, c, a, b, S2::type == Type::none ? typename S2::value{} : static_cast<typename S2::value>(e), false);
        out[64 * h + l] = f32_bits(Op::kFlags & kFpArith ? nan_result(dv, a, b, kSources == 3 ? e : b, Op::kFma) : dv);
      }
    };
    if (!w.plain_mode) {
      const FpScope scope(w.mode, Type::f32);
      loop();
    } else {
      loop();
    }
  }
  merge(w, i.op[0].index, out, true);
}

template <class Op>
constexpr Row packed32_row(const char* name) {
  Row r;
  r.name = name;
  r.cls = Class::vop3p;
  r.archs = gfx9;
  r.execute = &packed32<Op>;
  r.mods = kModOpSel | kModOpSelHi | kModNegLo | kModNegHi;
  r.flags = Op::kFlags;
  r.slot[r.slots++] = {Type::pk32, kWrite, 0};
  r.slot[r.slots++] = {Type::pk32, kRead, 0};
  r.slot[r.slots++] = {Type::pk32, kRead, 0};
  if (Op::S2::type != Type::none) r.slot[r.slots++] = {Type::pk32, kRead, 0};
  return r;
}

#define NETRA_CLASS Class::vop3p
#define NETRA_OP NETRA_OP_STRUCT
#define NETRA_SAT NETRA_SAT_STRUCT
#include "../sem/vop3p.inc"
#include "../sem/vop3p_f32.inc"
#undef NETRA_OP
#undef NETRA_SAT

#define NETRA_OP(A, N, ...) packed_row<N##_##A>(#N, A, NETRA_CLASS),
#define NETRA_SAT(A, N, ...) packed_row<N##_sat_##A>(#N, A, NETRA_CLASS),
constexpr Row kRows[] = {
#include "../sem/vop3p.inc"
#undef NETRA_OP
#define NETRA_OP(A, N, ...) packed32_row<N##_##A>(#N),
#include "../sem/vop3p_f32.inc"
};

}  // namespace

RowSpan vop3p_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra::NETRA_HOST_NS
