// The driver of every vector ALU instruction: operands, modifiers, EXEC, the lane loop.
//
// A semantics row is a struct with typed slots and a `body` for one lane. The driver materialises
// each source as a row of lanes (directly from the register file when nothing modifies it), runs
// the body over all lanes in one loop that the compiler vectorises, and merges the result under
// EXEC. Modifiers (DPP, SDWA, op_sel, neg, abs, clamp, omod, MODE) are row transformations before
// and after that loop, written once in valu_slow.cc.
#pragma once

#include <type_traits>

#include "lane.h"

namespace netra::NETRA_HOST_NS {

struct Lanes {
  const uint32_t* lo;
  const uint32_t* hi;
};

// Rows that one instruction works in.
struct Rows {
  alignas(64) uint32_t src[3][128];
  alignas(64) uint32_t out[128];
  alignas(64) uint32_t carry_in[64];
  alignas(64) uint32_t carry_out[64];
};

void refresh_lane_rows(Wave& w);
inline void sync_exec(Wave& w) {
  if (w.mask_exec != w.exec()) [[unlikely]] refresh_lane_rows(w);
}

// A source as it stands: VGPR rows, a broadcast constant, or a scalar spread into `tmp`.
inline Lanes fetch_plain(const Wave& w, const Operand& o, bool two, uint32_t* tmp) {
  if (o.kind == Kind::vgpr) {
    const uint32_t* r = w.row(o.index);
    return {r, r + w.lanes};
  }
  if (o.kind == Kind::constant) return {o.row, o.row + 64};
  const uint32_t lo = read_scalar(w, o, 0);
  for (int l = 0; l < 64; ++l) tmp[l] = lo;
  if (two) {
    const uint32_t hi = read_scalar(w, o, 1);
    for (int l = 0; l < 64; ++l) tmp[64 + l] = hi;
  }
  return {tmp, tmp + 64};
}

// A source with everything that the instruction and MODE do to it. `which` is 0 for src0 (the one
// that DPP permutes), 1 and 2 for the others, 3 for an addend that is the destination.
Lanes fetch_slow(const Wave& w, const Insn& i, const Operand& o, Type type, int which,
                 uint32_t* tmp);
// Lanes that the instruction writes: EXEC less what DPP masks and bound_ctrl leave alone.
uint64_t write_lanes(const Wave& w, const Insn& i);

// f32 rows to f16 or bf16 bits, by MODE when `mode` is given.
void narrow(const Wave& w, Type type, uint32_t* row, bool by_mode);
// Clamp, omod, then the write of `out` under `lanes` with SDWA and op_sel placement.
void finish_slow(Wave& w, const Insn& i, Type type, uint32_t* out, uint64_t lanes);
// out -> VGPR rows of the destination where lane_rows is set.
void merge(Wave& w, uint32_t row, const uint32_t* out, bool two);

// The NaN that an operation returns when its result is one: the first NaN source, quieted; an
// invalid product comes first in an fma (isa_gfx1151: checked before the addend).
template <class V>
inline V nan_result(V d, V a, V b, V c, bool fma) {
  if (!is_nan(d)) return d;
  const V invalid = -std::numeric_limits<V>::quiet_NaN();
  if (fma && ((is_inf(a) && b == 0) || (a == 0 && is_inf(b)))) return invalid;
  if (is_nan(a)) return quiet(a);
  if (is_nan(b)) return quiet(b);
  if (is_nan(c)) return quiet(c);
  return invalid;
}

// Op: D, C (bool: writes a lane mask), S0, S1, S2 (value types or Nil), V (bool: reads a lane
// mask), kAcc (S2 is the old D), kFlags (RowFlag), kFma, body(w, lane, D, C, S0, S1, S2, V).
template <class Op>
void valu(Wave& w, const Insn& i) {
  using D = typename Op::D;
  using S0 = typename Op::S0;
  using S1 = typename Op::S1;
  using S2 = typename Op::S2;
  constexpr int d = D::type != Type::none;
  constexpr int c = Op::C && !(Op::kFlags & kImplicitVccWrite);
  constexpr int n0 = d + c, n1 = n0 + (S0::type != Type::none),
                n2 = n1 + (S1::type != Type::none),
                nv = n2 + (S2::type != Type::none && !Op::kAcc);
  constexpr bool kHalf = is_16bit(D::type);
  constexpr bool kNarrow = D::type == Type::f16 || D::type == Type::bf16;
  constexpr bool kTwo = dwords_of(D::type) == 2;

  Rows t;
  sync_exec(w);
  const bool slow = !i.plain || !w.plain_mode;
  const auto fetch = [&](const Operand& o, Type type, int which, uint32_t* tmp) {
    return slow ? fetch_slow(w, i, o, type, which, tmp)
                : fetch_plain(w, o, dwords_of(type) == 2, tmp);
  };
  Lanes a{}, b{}, e{};
  if constexpr (S0::type != Type::none) a = fetch(i.op[n0], S0::type, 0, t.src[0]);
  if constexpr (S1::type != Type::none) b = fetch(i.op[n1], S1::type, 1, t.src[1]);
  if constexpr (Op::kAcc) {
    Operand acc = i.op[0];
    acc.index = i.acc_row;
    e = slow ? fetch_slow(w, i, acc, S2::type, 3, t.src[2])
             : fetch_plain(w, acc, dwords_of(S2::type) == 2, t.src[2]);
  } else if constexpr (S2::type != Type::none) {
    e = fetch(i.op[n2], S2::type, 2, t.src[2]);
  }
  if constexpr (Op::V)
    expand_bits(Op::kFlags & kImplicitVccRead ? w.vcc() : read_mask(w, i.op[nv]), t.carry_in);

  // With every lane active and nothing left to do to the result, it is written in place. A float
  // result is not: its NaN payload, when it is one, is chosen from sources that D may overlap.
  constexpr bool kArith = d && (Op::kFlags & kFpArith) != 0 && is_float(D::type);
  const bool direct = d && !kArith && !slow && !kNarrow && !kHalf &&
                      w.mask_exec == w.lane_mask;
  uint32_t* out = direct ? w.row(i.op[0].index) : t.out;
  uint32_t* out_hi = out + (direct ? w.lanes : 64);
  const int lanes = static_cast<int>(w.lanes);
  if (lanes & 31) __builtin_unreachable();

  uint32_t any_nan = 0;
  const auto loop = [&] {
    NETRA_LANES
    for (int l = 0; l < lanes; ++l) {
      typename D::value dv{};
      bool cv = false;
      const auto s0 = S0::get(a.lo, a.hi, l);
      const auto s1 = S1::get(b.lo, b.hi, l);
      const auto s2 = S2::get(e.lo, e.hi, l);
      Op::body(w, l, dv, cv, s0, s1, s2, Op::V ? t.carry_in[l] != 0 : false);
      if constexpr (Op::C) t.carry_out[l] = cv;
      if constexpr (d) D::put(out, out_hi, l, dv);
      if constexpr (kArith) any_nan |= is_nan(dv);
    }
  };
  if constexpr ((Op::kFlags & kFpArith) != 0) {
    if (!w.plain_mode) {
      const FpScope scope(w.mode, D::type);
      loop();
    } else {
      loop();
    }
  } else {
    loop();
  }
  // The payload rule is stated for sources of the type of the result (conversions quiet theirs).
  if constexpr (kArith && std::is_same_v<D, S0>) {
    if (any_nan) [[unlikely]] {
      for (int l = 0; l < lanes; ++l) {
        using V = typename D::value;
        const V s0 = S0::get(a.lo, a.hi, l);
        V s1 = s0, s2 = s0;
        if constexpr (std::is_same_v<D, S1>) s1 = S1::get(b.lo, b.hi, l);
        if constexpr (std::is_same_v<D, S2>) s2 = S2::get(e.lo, e.hi, l);
        V dv;
        if constexpr (kTwo) dv = D::get(out, out_hi, l);
        else dv = as_f32(out[l]);
        D::put(out, out_hi, l, nan_result(dv, s0, s1, s2, Op::kFma));
      }
    }
  }
  if constexpr (Op::C) {
    uint64_t bits = pack_bits(t.carry_out, w.lanes);
    const uint64_t written = slow ? write_lanes(w, i) : w.mask_exec;
    bits &= written;
    if constexpr (Op::kFlags & kImplicitVccWrite) {
      if (w.lanes == 64) w.set_pair(kVcc, bits);
      else w.s[kVcc] = static_cast<uint32_t>(bits);
    } else {
      write_mask(w, i.op[d], bits);
    }
  }
  if constexpr (d) {
    if (direct) return;
    if constexpr (kNarrow) narrow(w, D::type, out, (Op::kFlags & kFpArith) && !w.plain_mode);
    if (slow || kHalf) finish_slow(w, i, D::type, out, write_lanes(w, i));
    else merge(w, i.op[0].index, out, kTwo);
  }
}

}  // namespace netra::NETRA_HOST_NS
