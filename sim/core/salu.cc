// Scalar ALU: SOP1, SOP2, SOPC, SOPK. The driver reads typed operands and writes the result; SCC
// and the rest of the wave are in the body's hands.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "hwreg.h"
#include "rows.h"

namespace netra {
namespace {

inline constexpr uint8_t both = kBoth, gfx9 = kGfx950, gfx11 = kGfx1151;

struct Nil {
  using value = int;
  static constexpr Type type = Type::none;
};
template <Type T, class V>
struct Scalar {
  using value = V;
  static constexpr Type type = T;
};
using B32 = Scalar<Type::b32, uint32_t>;
using U32 = Scalar<Type::u32, uint32_t>;
using I32 = Scalar<Type::i32, int32_t>;
using F32 = Scalar<Type::f32, float>;
using F16 = Scalar<Type::f16, float>;
using B64 = Scalar<Type::b64, uint64_t>;
using U64 = Scalar<Type::u64, uint64_t>;
using I64 = Scalar<Type::i64, int64_t>;

template <class T>
typename T::value read(const Wave& w, const Operand& o) {
  using V = typename T::value;
  if constexpr (T::type == Type::none) return 0;
  else if constexpr (sizeof(V) == 8) return static_cast<V>(read_scalar64(w, o));
  else return std::bit_cast<V>(read_scalar(w, o));
}
template <class T>
void write(Wave& w, const Operand& o, typename T::value x) {
  if constexpr (sizeof(x) == 8) write_scalar64(w, o, static_cast<uint64_t>(x));
  else write_scalar(w, o, std::bit_cast<uint32_t>(x));
}

// Op: D, S0, S1, kReadsD (D is also a source), body(w, i, D, S0, S1).
template <class Op>
void salu(Wave& w, const Insn& i) {
  using TD = typename Op::D;
  constexpr int d = TD::type != Type::none;
  constexpr int n1 = d + (Op::S0::type != Type::none);
  const auto s0 = read<typename Op::S0>(w, i.op[d]);
  const auto s1 = read<typename Op::S1>(w, i.op[n1]);
  typename TD::value dv{};
  if constexpr (d && Op::kReadsD) dv = read<TD>(w, i.op[0]);
  Op::body(w, i, dv, s0, s1);
  if constexpr (d) write<TD>(w, i.op[0], dv);
}

template <class Op>
constexpr Row salu_row(const char* name, uint8_t archs, Class cls) {
  Row r;
  r.name = name;
  r.cls = cls;
  r.archs = archs;
  r.execute = &salu<Op>;
  r.flags = Op::kFlags;
  if (Op::D::type != Type::none)
    r.slot[r.slots++] = {Op::D::type, Op::kReadsD ? kReadWrite : kWrite, 0};
  if (Op::S0::type != Type::none) r.slot[r.slots++] = {Op::S0::type, kRead, 0};
  if (Op::S1::type != Type::none) r.slot[r.slots++] = {Op::S1::type, kRead, 0};
  if (Op::kFlags & kBranch) r.slot[r.slots++] = {Type::text, kRead, 0};
  return r;
}

// Lowest set bit, or -1; leading bits equal to the sign, or -1 when all are.
template <class U>
int32_t find_low(U x) { return x ? std::countr_zero(x) : -1; }
template <class U>
int32_t find_high(U x) { return x ? std::countl_zero(x) : -1; }
template <class S>
int32_t sign_run(S x) {
  using U = std::make_unsigned_t<S>;
  const U folded = static_cast<U>(x < 0 ? ~x : x);
  return folded ? std::countl_zero(folded) : -1;
}
template <class U>
U whole_quads(U x) {
  U r = 0;
  for (unsigned k = 0; k < sizeof(U) * 8; k += 4)
    if (x >> k & 15) r |= static_cast<U>(15) << k;
  return r;
}
template <class U>
U quad_any(U x) {
  U r = 0;
  for (unsigned k = 0; k < sizeof(U) * 2; ++k)
    if (x >> (4 * k) & 15) r |= static_cast<U>(1) << k;
  return r;
}
template <class U>
U reverse(U x) {
  U r = 0;
  for (unsigned k = 0; k < sizeof(U) * 8; ++k) r = r << 1 | (x >> k & 1);
  return r;
}
uint64_t replicate(uint32_t x) {
  uint64_t r = 0;
  for (int k = 0; k < 32; ++k) r |= static_cast<uint64_t>(x >> k & 1) * 3 << (2 * k);
  return r;
}
template <class S>
S extract(S x, uint32_t offset, uint32_t width) {
  constexpr uint32_t kBits = sizeof(S) * 8;
  if (width == 0) return 0;
  const S shifted = x >> offset;   // arithmetic for signed S
  if (width >= kBits) return shifted;
  using U = std::make_unsigned_t<S>;
  const U low = static_cast<U>(shifted) & ((static_cast<U>(1) << width) - 1);
  if constexpr (std::is_signed_v<S>)
    return static_cast<S>(low << (kBits - width)) >> (kBits - width);
  else return low;
}
bool add_overflows(int32_t a, int32_t b) {
  int32_t r;
  return __builtin_add_overflow(a, b, &r);
}
bool sub_overflows(int32_t a, int32_t b) {
  int32_t r;
  return __builtin_sub_overflow(a, b, &r);
}
int32_t wrap(int64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }

// D = old EXEC; EXEC = op(S0, EXEC); SCC = EXEC != 0. `bits` is 32 or 64.
template <class T>
void save_exec(Wave& w, T& d, T exec) {
  const T old = static_cast<T>(sizeof(T) == 8 ? w.pair(kExec) : w.s[kExec]);
  if (sizeof(T) == 8) w.set_pair(kExec, exec);
  else w.s[kExec] = static_cast<uint32_t>(exec);
  d = old;
  w.scc = exec != 0;
}
template <class T>
void wr_exec(Wave& w, T& d, T exec) {
  if (sizeof(T) == 8) w.set_pair(kExec, exec);
  else w.s[kExec] = static_cast<uint32_t>(exec);
  d = exec;
  w.scc = exec != 0;
}
uint64_t exec_of(const Wave& w) { return w.pair(kExec); }

#define NETRA_SCALAR_OP(A, N, TD, T0, T1, READS_D, FLAGS, ...)                              \
  struct N##_##A {                                                                          \
    using D = TD;                                                                           \
    using S0 = T0;                                                                          \
    using S1 = T1;                                                                          \
    static constexpr bool kReadsD = READS_D;                                                \
    static constexpr uint32_t kFlags = FLAGS;                                               \
    static inline void body([[maybe_unused]] Wave& w, [[maybe_unused]] const Insn& i,       \
                            [[maybe_unused]] typename TD::value& D,                         \
                            [[maybe_unused]] typename T0::value S0,                         \
                            [[maybe_unused]] typename T1::value S1) {                       \
      [[maybe_unused]] bool& SCC = w.scc;                                                   \
      __VA_ARGS__;                                                                          \
    }                                                                                       \
  };
#define NETRA_SCALAR_ROW(A, N, TD, T0, T1, READS_D, FLAGS, ...) \
  salu_row<N##_##A>(#N, A, NETRA_CLASS),

#define OP1(A, N, TD, T0, ...) NETRA_OP(A, N, TD, T0, Nil, 0, 0, __VA_ARGS__)
#define OP2(A, N, TD, T0, T1, ...) NETRA_OP(A, N, TD, T0, T1, 0, 0, __VA_ARGS__)
#define OP0(A, N, TD, ...) NETRA_OP(A, N, TD, Nil, Nil, 0, 0, __VA_ARGS__)
#define SRC1(A, N, T0, ...) NETRA_OP(A, N, Nil, T0, Nil, 0, 0, __VA_ARGS__)
#define SRC2(A, N, T0, T1, ...) NETRA_OP(A, N, Nil, T0, T1, 0, 0, __VA_ARGS__)
#define UPD1(A, N, TD, T0, ...) NETRA_OP(A, N, TD, T0, Nil, 1, 0, __VA_ARGS__)

#define NETRA_OP NETRA_SCALAR_OP
#include "sem/sop1.inc"
#include "sem/sop2.inc"
#include "sem/sopc.inc"
#include "sem/sopk.inc"
#undef NETRA_OP

#define NETRA_OP NETRA_SCALAR_ROW
#define NETRA_CLASS Class::sop1
constexpr Row kSop1[] = {
#include "sem/sop1.inc"
};
#undef NETRA_CLASS
#define NETRA_CLASS Class::sop2
constexpr Row kSop2[] = {
#include "sem/sop2.inc"
};
#undef NETRA_CLASS
#define NETRA_CLASS Class::sopc
constexpr Row kSopc[] = {
#include "sem/sopc.inc"
};
#undef NETRA_CLASS
#define NETRA_CLASS Class::sopk
const Row kSopk[] = {
#include "sem/sopk.inc"
    hwreg_row("s_getreg_b32", &getreg, true),
    hwreg_row("s_setreg_b32", &setreg, false),
    hwreg_row("s_setreg_imm32_b32", &setreg, false),
};

template <size_t N>
RowSpan span(const Row (&rows)[N]) { return {rows, N}; }

}  // namespace

RowSpan sop1_rows() { return span(kSop1); }
RowSpan sop2_rows() { return span(kSop2); }
RowSpan sopc_rows() { return span(kSopc); }
RowSpan sopk_rows() { return span(kSopk); }

}  // namespace netra
