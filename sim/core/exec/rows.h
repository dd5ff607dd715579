// The vocabulary of sem/v*.inc: each line becomes a struct with a body, and a row of a table.
//
//   D, S0, S1, S2   this lane's operands, in the types that the line names
//   C               the lane's bit of a mask result (compares, carries)
//   V               the lane's bit of a mask operand (cndmask, carry-in)
//   lane, w, i      lane number; the wave, for MODE; the instruction, for an immediate
//
// The first argument of a line says where it holds: both, gfx9 (gfx950), gfx11 (gfx1151). A file
// of rows is included twice, with NETRA_OP making a struct and then a table entry.
#pragma once

#include <string_view>

#include "math.h"
#include "table.h"
#include "valu.h"

namespace netra::NETRA_HOST_NS {

inline constexpr uint8_t both = kBoth, gfx9 = kGfx950, gfx11 = kGfx1151;

// Flags of most float rows: kA rounds and flushes by MODE, kFlush only flushes its inputs,
// kT is the transcendental unit in f32, which ignores MODE; in f16 (kT16) it only rounds its own way.
inline constexpr uint32_t kA = kFpArith | kFpFlushIn, kFlush = kFpFlushIn, kT = kTrans, kNo = 0,
                          kT16 = kTrans | kFpFlushIn | kFpNearest;

inline constexpr uint32_t kValuMods = kModNeg | kModAbs | kModSext | kModHalf | kModClamp |
                                      kModOmod | kModOpSel | kModDpp | kModDpp8 | kModSdwa |
                                      kModBoundCtrl;

template <class Op>
constexpr Row valu_row(const char* name, uint8_t archs, Class cls) {
  Row r;
  r.name = name;
  r.cls = cls;
  r.archs = archs;
  r.execute = &valu<Op>;
  r.mods = kValuMods | (std::string_view(name).substr(0, 8) == "v_bitop3" ? kModBitop : 0u);
  r.flags = Op::kFlags;
  // What an integer clamp does is a row of its own, and only a float is scaled.
  constexpr bool kMask = Op::D::type == Type::none && Op::C;
  if (!is_16bit(Op::D::type) && !is_16bit(Op::S0::type) && !is_16bit(Op::S1::type) &&
      !is_16bit(Op::S2::type))
    r.mods &= ~(kModOpSel | kModHalf);
  if (!is_float(Op::D::type)) {
    r.mods &= ~kModOmod;
    if (!kMask && !(Op::kFlags & kClampRow)) r.mods &= ~kModClamp;
  }
  const auto add = [&r](Type t, Role role) {
    if (t != Type::none) r.slot[r.slots++] = {t, role, 0};
  };
  add(Op::D::type, Op::kAcc ? kReadWrite : kWrite);
  if (Op::C && !(Op::kFlags & kImplicitVccWrite)) add(Type::mask, kWrite);
  add(Op::S0::type, kRead);
  add(Op::S1::type, kRead);
  if (!Op::kAcc) add(Op::S2::type, kRead);
  if (Op::V && !(Op::kFlags & kImplicitVccRead)) add(Type::mask, kRead);
  return r;
}

#define NETRA_OP_STRUCT(A, N, TD, HAS_C, T0, T1, T2, HAS_V, ACC, FMA, FLAGS, ...)                 \
  struct N##_##A {                                                                                \
    using D = TD;                                                                                 \
    using S0 = T0;                                                                                \
    using S1 = T1;                                                                                \
    using S2 = T2;                                                                                \
    static constexpr bool C = HAS_C, V = HAS_V, kAcc = ACC, kFma = FMA;                           \
    static constexpr uint32_t kFlags = (FLAGS);                                                   \
    /* The payload rule is stated for sources of the type of the result. */                       \
    static constexpr bool kNanRule = (kFlags & kFpArith) && !(kFlags & kOwnNan) &&                \
                                     is_float(D::type) && std::is_same_v<D, S0>;                  \
    static inline void body([[maybe_unused]] const Wave& w, [[maybe_unused]] const Insn& i,       \
                            [[maybe_unused]] int lane, [[maybe_unused]] typename TD::value& D,    \
                            [[maybe_unused]] bool& C, [[maybe_unused]] typename T0::value S0,     \
                            [[maybe_unused]] typename T1::value S1,                               \
                            [[maybe_unused]] typename T2::value S2, [[maybe_unused]] bool V) {    \
      __VA_ARGS__;                                                                                \
    }                                                                                             \
  };
#define NETRA_OP_ROW(A, N, TD, HAS_C, T0, T1, T2, HAS_V, ACC, FMA, FLAGS, ...) \
  valu_row<N##_##A>(#N, A, NETRA_CLASS),
// The same mnemonic with `clamp`, as a row of its own.
#define NETRA_CLAMP_STRUCT(A, N, TD, HAS_C, T0, T1, T2, HAS_V, ACC, FLAGS, ...)                \
  NETRA_OP_STRUCT(A, N##_clamp, TD, HAS_C, T0, T1, T2, HAS_V, ACC, 0, kClampRow | (FLAGS), \
                  __VA_ARGS__)
#define NETRA_CLAMP_ROW(A, N, TD, HAS_C, T0, T1, T2, HAS_V, ACC, FLAGS, ...) \
  valu_row<N##_clamp_##A>(#N, A, NETRA_CLASS),

#define OP1(A, N, TD, T0, F, ...) NETRA_OP(A, N, TD, 0, T0, Nil, Nil, 0, 0, 0, F, __VA_ARGS__)
#define OP2(A, N, TD, T0, T1, F, ...) NETRA_OP(A, N, TD, 0, T0, T1, Nil, 0, 0, 0, F, __VA_ARGS__)
#define OP3(A, N, TD, T0, T1, T2, F, ...) NETRA_OP(A, N, TD, 0, T0, T1, T2, 0, 0, 0, F, __VA_ARGS__)
// Fused multiply-add: 0 * inf decides the NaN. FMAC: S2 is the old D, and is not in the text.
#define FMA3(A, N, TD, T0, T1, T2, F, ...) NETRA_OP(A, N, TD, 0, T0, T1, T2, 0, 0, 1, F, __VA_ARGS__)
#define FMAC(A, N, TD, T0, T1, F, ...) NETRA_OP(A, N, TD, 0, T0, T1, TD, 0, 1, 1, F, __VA_ARGS__)
#define ACC2(A, N, TD, T0, T1, F, ...) NETRA_OP(A, N, TD, 0, T0, T1, TD, 0, 1, 0, F, __VA_ARGS__)
// Mask operands: SEL reads one, CARRY writes one, CARRYIN does both.
#define SEL(A, N, TD, T0, T1, F, ...) NETRA_OP(A, N, TD, 0, T0, T1, Nil, 1, 0, 0, F, __VA_ARGS__)
#define CARRY(A, N, TD, T0, T1, F, ...) NETRA_OP(A, N, TD, 1, T0, T1, Nil, 0, 0, 0, F, __VA_ARGS__)
#define CARRY3(A, N, TD, T0, T1, T2, F, ...) NETRA_OP(A, N, TD, 1, T0, T1, T2, 0, 0, 0, F, __VA_ARGS__)
#define CARRYIN(A, N, TD, T0, T1, F, ...) NETRA_OP(A, N, TD, 1, T0, T1, Nil, 1, 0, 0, F, __VA_ARGS__)

// Rows for `clamp`. SAT: the exact result W saturates to the type of D. CARRYSAT, CLAMPED: the
// body does it. SAME: the operation saturates by itself, and clamp changes nothing.
#define SAT3F(A, N, TD, T0, T1, T2, F, ...) \
  NETRA_CLAMP(A, N, TD, 0, T0, T1, T2, 0, 0, F, const int64_t W = __VA_ARGS__; D = saturate<TD>(W))
#define SAT2(A, N, TD, T0, T1, ...) SAT3F(A, N, TD, T0, T1, Nil, kNo, __VA_ARGS__)
#define ACCSAT(A, N, TD, T0, T1, ...) \
  NETRA_CLAMP(A, N, TD, 0, T0, T1, TD, 0, 1, kNo, const int64_t W = __VA_ARGS__; D = saturate<TD>(W))
#define CARRYSAT(A, N, TD, T0, T1, HAS_V, ...) \
  NETRA_CLAMP(A, N, TD, 1, T0, T1, Nil, HAS_V, 0, kNo, __VA_ARGS__)
#define CLAMPED(A, N, TD, HAS_C, T0, T1, T2, ...) \
  NETRA_CLAMP(A, N, TD, HAS_C, T0, T1, T2, 0, 0, kNo, __VA_ARGS__)
#define SAME1(A, N, TD, T0, F, ...) \
  OP1(A, N, TD, T0, F, __VA_ARGS__) NETRA_CLAMP(A, N, TD, 0, T0, Nil, Nil, 0, 0, F, __VA_ARGS__)

}  // namespace netra::NETRA_HOST_NS
