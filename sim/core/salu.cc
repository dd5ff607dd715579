// Scalar ALU: SOP1, SOP2, SOPC, SOPK (floats: exec/salu_float.cc). The driver reads typed operands and writes the result; SCC
// and the rest of the wave are in the body's hands.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "hwreg.h"
#include "launch.h"
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

// What a body does to SCC, from its text: it is written by an assignment and by the EXEC operations,
// and a mention before that reads it.
constexpr uint32_t scc_flags(std::string_view body) {
  uint32_t flags = 0;
  for (const std::string_view call : {"save_exec(", "wr_exec("})
    if (body.find(call) != body.npos) flags |= kWritesScc;
  for (size_t at = body.find("SCC"); at != body.npos; at = body.find("SCC", at + 3)) {
    if (body.substr(at + 3, 3) == " = ") return flags | kWritesScc;   // what follows is its own
    flags |= kReadsScc;
  }
  return flags;
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

// SGPRs chosen at run time: M0 is added to the number as it is (not scaled for pairs).
uint32_t relative(Wave& w, const Insn& i, const Operand& o, uint32_t by, uint32_t dwords) {
  const Descriptor& d = w.launch->kernel->descriptor;
  const uint32_t limit = d.sgprs_allocated ? std::min<uint32_t>(d.sgprs_allocated, 102) : 106;
  const uint64_t at = static_cast<uint64_t>(o.index) + by;
  if (at + dwords <= limit) return static_cast<uint32_t>(at);
  fault(w, i, 719, "M0 adds " + std::to_string(by) + " to s" + std::to_string(o.index) +
                       ": past the " + std::to_string(limit) + " SGPRs of the wave");
  return 0;
}
template <uint32_t kDwords, bool kSource, bool kDest, bool kTwo = false>
void movrel(Wave& w, const Insn& i) {
  const uint32_t m0 = w.s[kM0];
  Operand d = i.op[0], s = i.op[1];
  if (kSource) s.index = static_cast<uint16_t>(relative(w, i, s, kTwo ? m0 & 0x3ff : m0, kDwords));
  if (kDest) d.index = static_cast<uint16_t>(relative(w, i, d, kTwo ? m0 >> 16 & 0x3ff : m0, kDwords));
  if (w.state == State::faulted) return;
  if (kDwords == 2) write_scalar64(w, d, read_scalar64(w, s));
  else write_scalar(w, d, read_scalar(w, s));
}

// gfx950's register indexing: M0[7:0] is added to VGPR numbers, M0[15:12] says for which roles.
void gpr_idx_on(Wave& w, const Insn& i) {
  w.s[kM0] = (w.s[kM0] & ~0xf0ffu) | (read_scalar(w, i.op[0]) & 0xff) | gpr_idx_roles(i) << 12;
  w.set_mode(w.mode | kModeGprIdx);
}
void gpr_idx_idx(Wave& w, const Insn& i) {
  w.s[kM0] = (w.s[kM0] & ~0xffu) | (read_scalar(w, i.op[0]) & 0xff);
}
void setvskip(Wave& w, const Insn& i) {
  const bool skip = read_scalar(w, i.op[0]) >> (read_scalar(w, i.op[1]) & 31) & 1;
  w.set_mode(skip ? w.mode | kModeVskip : w.mode & ~kModeVskip);
}

// The message with an answer that has a meaning here: the constant-rate clock.
template <uint32_t kDwords>
void sendmsg_rtn(Wave& w, const Insn& i) {
  if (!std::strstr(i.text, "MSG_RTN_GET_REALTIME"))
    return fault(w, i, 719, std::string("message is not implemented: ") + i.text);
  const uint64_t now = w.executed / 16;
  if (kDwords == 2) write_scalar64(w, i.op[0], now);
  else write_scalar(w, i.op[0], static_cast<uint32_t>(now));
}
void nothing(Wave&, const Insn&) {}

constexpr Slot kOut = {Type::b32, kWrite, 0}, kIn = {Type::b32, kRead, 0},
               kOut64 = {Type::b64, kWrite, 0}, kIn64 = {Type::b64, kRead, 0},
               kText = {Type::text, kRead, 0};
constexpr Row own(const char* name, uint8_t archs, Class cls, Execute execute,
                  std::initializer_list<Slot> slots, uint32_t flags = 0) {
  Row r;
  r.name = name, r.archs = archs, r.cls = cls, r.execute = execute, r.flags = flags;
  for (const Slot& s : slots) r.slot[r.slots++] = s;
  return r;
}

#define NETRA_SCALAR_OP(A, N, TD, T0, T1, READS_D, FLAGS, ...)                              \
  struct N##_##A {                                                                          \
    using D = TD;                                                                           \
    using S0 = T0;                                                                          \
    using S1 = T1;                                                                          \
    static constexpr bool kReadsD = READS_D;                                                \
    static constexpr uint32_t kFlags = (FLAGS) | scc_flags(#__VA_ARGS__);                   \
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
    own("s_movrels_b32", both, Class::sop1, &movrel<1, true, false>, {kOut, kIn}, kReadsM0),
    own("s_movrels_b64", both, Class::sop1, &movrel<2, true, false>, {kOut64, kIn64}, kReadsM0),
    own("s_movreld_b32", both, Class::sop1, &movrel<1, false, true>, {kOut, kIn}, kReadsM0),
    own("s_movreld_b64", both, Class::sop1, &movrel<2, false, true>, {kOut64, kIn64}, kReadsM0),
    own("s_movrelsd_2_b32", gfx11, Class::sop1, &movrel<1, true, true, true>, {kOut, kIn}, kReadsM0),
    own("s_set_gpr_idx_idx", gfx9, Class::sop1, &gpr_idx_idx, {kIn}),
    own("s_sendmsg_rtn_b32", gfx11, Class::sop1, &sendmsg_rtn<1>, {kOut, kText}),
    own("s_sendmsg_rtn_b64", gfx11, Class::sop1, &sendmsg_rtn<2>, {kOut64, kText}),
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
    own("s_setvskip", gfx9, Class::sopc, &setvskip, {kIn, kIn}),
    own("s_set_gpr_idx_on", gfx9, Class::sopc, &gpr_idx_on, {kIn, kText}),
};
#undef NETRA_CLASS
#define NETRA_CLASS Class::sopk
const Row kSopk[] = {
#include "sem/sopk.inc"
    hwreg_row("s_getreg_b32", &getreg, true),
    hwreg_row("s_setreg_b32", &setreg, false),
    hwreg_row("s_setreg_imm32_b32", &setreg, false),
    own("s_version", gfx11, Class::sopk, &nothing, {kText}),
    own("s_waitcnt_vscnt", gfx11, Class::sopk, &nothing, {kIn, kIn}),
    own("s_waitcnt_vmcnt", gfx11, Class::sopk, &nothing, {kIn, kIn}),
    own("s_waitcnt_expcnt", gfx11, Class::sopk, &nothing, {kIn, kIn}),
    own("s_waitcnt_lgkmcnt", gfx11, Class::sopk, &nothing, {kIn, kIn}),
};

template <size_t N>
RowSpan span(const Row (&rows)[N]) { return {rows, N}; }

}  // namespace

RowSpan sop1_rows() { return span(kSop1); }
RowSpan sop2_rows() { return span(kSop2); }
RowSpan sopc_rows() { return span(kSopc); }
RowSpan sopk_rows() { return span(kSopk); }

}  // namespace netra
