// The driver of every vector ALU instruction: operands, modifiers, EXEC, the lane loop.
//
// A semantics row is a struct with typed slots and a `body` for one lane. The driver materialises
// each source as a row of lanes (directly from the register file when nothing modifies it), runs
// the body over all lanes in one loop that the compiler vectorises, and merges the result under
// EXEC. Modifiers (DPP, SDWA, op_sel, neg, abs, clamp, omod, MODE) are row transformations before
// and after that loop, written once in valu_slow.cc: a row costs the compiler one loop.
#pragma once

#include <type_traits>

#include "lane.h"

namespace netra::NETRA_HOST_NS {

struct Lanes {
  const uint32_t* lo;
  const uint32_t* hi;
};

// What the loop of a row works on.
struct Job {
  Lanes a{}, b{}, c{};             // sources
  const uint32_t* carry_in = nullptr;
  uint32_t* out = nullptr;         // F16 and BF16 leave f32 here, see narrow()
  uint32_t* out_hi = nullptr;
  uint32_t* carry_out = nullptr;
  int lanes = 64;                  // 32 or 64
  uint32_t any_nan = 0;            // set by rows that follow the NaN rule
};

// A row without its body: what the parts of the driver that are not templates need to know.
struct Form {
  void (*loop)(const Wave&, const Insn&, Job&) = nullptr;
  Type d, s0, s1, s2;
  bool c, v;                       // writes, reads a lane mask
  bool acc, fma;                   // S2 is the old D; 0 * inf decides a NaN first
  bool nan_rule;                   // a NaN result is chosen from the sources
  uint32_t flags;
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

// Roles of a VGPR under s_set_gpr_idx: the bits of M0[15:12].
inline constexpr int kRoleDst = 3;
// The operand with M0's index added where the mode asks for it; a fault past the allocation.
Operand indexed(Wave& w, const Insn& i, const Operand& o, int role, uint32_t registers);

// `from` as DPP permutes it, into tmp; and the lanes that the instruction writes: EXEC less what DPP
// masks and bound_ctrl leave alone.
void permute(const Wave& w, const Insn& i, Lanes from, bool two, uint32_t* tmp);
uint64_t write_lanes(const Wave& w, const Insn& i);

// The whole driver for an instruction with modifiers, or under a MODE that changes values.
void valu_slow(Wave& w, const Insn& i, const Form& form);
// Body under MODE (rounding, flushing), the NaN rule, then f32 rows to the 16-bit type of D.
void run_body(const Wave& w, const Insn& i, const Form& form, Job& job);
void fix_nans(const Wave& w, const Form& form, Job& job);

// The input flush of MODE, on rows of a type; abs and neg.
void flush_inputs(Type type, uint32_t* lo, uint32_t* hi, int lanes);
bool flushes_inputs(const Wave& w, uint32_t flags, Type type);
// Float clamp to [0, 1]; what a NaN becomes depends on MODE.DX10_CLAMP.
void clamp_rows(const Wave& w, Type type, uint32_t* lo, uint32_t* hi);

// f32 rows to f16 or bf16 bits: nearest even, or in the rounding and flushing of MODE.
void narrow(const Wave& w, Type type, uint32_t* row, uint32_t flags);
// out -> VGPR rows of the destination where lane_rows is set.
void merge(Wave& w, uint32_t row, const uint32_t* out, bool two);
// The low half of out -> low half of the destination; the other half stays, or becomes zero.
void merge_half(Wave& w, uint32_t row, const uint32_t* out, bool keep);
void write_carry(Wave& w, const Insn& i, const Form& form, uint64_t bits, uint64_t written);

// Whether a 16-bit result leaves the other half of D alone. gfx11 always does; gfx9 zeroes it,
// except in the forms that have op_sel (three sources, and the VOP3-only ones).
inline bool keeps_half(const Wave& w, const Insn& i) {
  return w.gfx11 || (i.row->flags & kMergeHalf);
}

template <class Op>
void loop(const Wave& w, const Insn& i, Job& job) {
  using D = typename Op::D;
  using S0 = typename Op::S0;
  using S1 = typename Op::S1;
  using S2 = typename Op::S2;
  constexpr bool d = D::type != Type::none;
  const Lanes a = job.a, b = job.b, e = job.c;
  const uint32_t* carry_in = job.carry_in;
  uint32_t *out = job.out, *out_hi = job.out_hi, *carry_out = job.carry_out;
  const int lanes = job.lanes;
  if (lanes & 31) __builtin_unreachable();
  uint32_t any_nan = 0;
  NETRA_LANES
  for (int l = 0; l < lanes; ++l) {
    typename D::value dv{};
    bool cv = false;
    const auto s0 = S0::get(a.lo, a.hi, l);
    const auto s1 = S1::get(b.lo, b.hi, l);
    const auto s2 = S2::get(e.lo, e.hi, l);
    Op::body(w, i, l, dv, cv, s0, s1, s2, Op::V ? carry_in[l] != 0 : false);
    if constexpr (Op::C) carry_out[l] = cv;
    if constexpr (d) D::put(out, out_hi, l, dv);
    if constexpr (Op::kNanRule) any_nan |= is_nan(dv);
  }
  job.any_nan = any_nan;
}

template <class Op>
inline constexpr Form kForm = {&loop<Op>, Op::D::type, Op::S0::type, Op::S1::type, Op::S2::type,
                               Op::C, Op::V, Op::kAcc, Op::kFma, Op::kNanRule, Op::kFlags};

// Op: D, C (bool: writes a lane mask), S0, S1, S2 (value types or Nil), V (bool: reads a lane
// mask), kAcc (S2 is the old D), kFlags (RowFlag), kFma, body(w, i, lane, D, C, S0, S1, S2, V).
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
  constexpr bool kFloat = (Op::kFlags & (kFpArith | kFpNearest | kFpFlushIn)) != 0;

  const bool by_mode = kFloat ? !w.plain_mode : w.mode & kModeGprIdx;
  if (!i.plain || by_mode) [[unlikely]] return valu_slow(w, i, kForm<Op>);
  sync_exec(w);
  Rows t;
  Job job;
  job.lanes = static_cast<int>(w.lanes);
  if constexpr (S0::type != Type::none)
    job.a = fetch_plain(w, i.op[n0], dwords_of(S0::type) == 2, t.src[0]);
  if constexpr (S1::type != Type::none)
    job.b = fetch_plain(w, i.op[n1], dwords_of(S1::type) == 2, t.src[1]);
  if constexpr (Op::kAcc) {
    const uint32_t* r = w.row(i.acc_row);
    job.c = {r, r + w.lanes};
  } else if constexpr (S2::type != Type::none) {
    job.c = fetch_plain(w, i.op[n2], dwords_of(S2::type) == 2, t.src[2]);
  }
  if constexpr (Op::V) {
    expand_bits(Op::kFlags & kImplicitVccRead ? w.vcc() : read_mask(w, i.op[nv]), t.carry_in);
    job.carry_in = t.carry_in;
  }
  // With every lane active and nothing left to do to the result, it is written in place. A float
  // result is not: its NaN payload, when it is one, is chosen from sources that D may overlap.
  const bool direct = d && !Op::kNanRule && !kHalf && w.mask_exec == w.lane_mask;
  job.out = direct ? w.row(i.op[0].index) : t.out;
  job.out_hi = job.out + (direct ? w.lanes : 64);
  job.carry_out = t.carry_out;
  loop<Op>(w, i, job);
  if constexpr (Op::kNanRule)
    if (job.any_nan) [[unlikely]] fix_nans(w, kForm<Op>, job);
  if constexpr (Op::C) {
    const uint64_t bits = pack_bits(t.carry_out, w.lanes) & w.mask_exec;
    if constexpr (Op::kFlags & kImplicitVccWrite) write_carry(w, i, kForm<Op>, bits, w.mask_exec);
    else write_mask(w, i.op[d], bits);
  }
  if constexpr (d) {
    if (direct) return;
    if constexpr (kNarrow) narrow(w, D::type, job.out, 0);
    if constexpr (kHalf) merge_half(w, i.op[0].index, job.out, keeps_half(w, i));
    else merge(w, i.op[0].index, job.out, kTwo);
  }
}

}  // namespace netra::NETRA_HOST_NS
