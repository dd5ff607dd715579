// One decoded instruction, and the row of the semantics table that it is bound to.
#pragma once

#include <cstdint>
#include <string>

namespace netra {

struct Wave;
struct Insn;

// What a register, constant or memory element holds; also fixes how a constant expands.
enum class Type : uint8_t {
  none,
  b16, u16, i16, f16, bf16,
  b32, u32, i32, f32,
  b64, u64, i64, f64,
  pk32,    // a pair of registers with a dword each (v_pk_fma_f32)
  mask,    // one bit per lane: 1 SGPR in wave32, 2 in wave64
  wide,    // `dwords` registers of raw data (memory, matrices)
  text,    // hwreg(...), vmcnt(...), a label: the class parses it
};

constexpr uint32_t dwords_of(Type t) {
  switch (t) {
    case Type::none: case Type::text: return 0;
    case Type::b64: case Type::u64: case Type::i64: case Type::f64: case Type::pk32: return 2;
    default: return 1;
  }
}
constexpr bool is_16bit(Type t) { return t >= Type::b16 && t <= Type::bf16; }
constexpr bool is_float(Type t) {
  return t == Type::f16 || t == Type::bf16 || t == Type::f32 || t == Type::f64;
}

// The file an operand lives in. `special` is a value that is computed when it is read.
enum class Kind : uint8_t { none, vgpr, agpr, sgpr, constant, special, off, text };

enum class Special : uint16_t {
  vccz, execz, scc, shared_base, shared_limit, private_base, private_limit, lds_direct,
};

// SGPR numbers that have names. M0 and NULL are numbered alike on both targets (their encodings
// are swapped between gfx9 and gfx11, but operands are parsed by name).
inline constexpr uint16_t kFlatScratch = 102, kXnackMask = 104, kVcc = 106, kTtmp = 108, kM0 = 124,
                          kNull = 125, kExec = 126, kScalarFile = 128;

struct Operand {
  Kind kind = Kind::none;
  uint8_t dwords = 0;         // registers named in the text: v[2:3] is 2
  uint16_t index = 0;         // register number; VGPR file row once bound; Special
  bool neg = false, abs = false, sext = false;
  uint8_t half = 0;           // 1: .l, 2: .h
  bool is_fp_text = false;    // written as 1.0, -0.5, ...
  bool literal = false;       // a literal dword, not an inline constant
  uint64_t value = 0;         // constant: two's complement integer, or the bits of a double
  uint32_t bits_lo = 0, bits_hi = 0;        // constant, expanded to the type of its slot
  const uint32_t* row = nullptr;            // constant, broadcast: 64 lanes of lo, then 64 of hi
};

// Every modifier that the disassembler can print, as a bit: a row lists what it gives meaning to,
// and anything else is refused.
enum Mod : uint32_t {
  kModNeg = 1u << 0, kModAbs = 1u << 1, kModSext = 1u << 2, kModHalf = 1u << 3,
  kModClamp = 1u << 4, kModOmod = 1u << 5, kModOpSel = 1u << 6, kModOpSelHi = 1u << 7,
  kModNegLo = 1u << 8, kModNegHi = 1u << 9, kModDpp = 1u << 10, kModDpp8 = 1u << 11,
  kModSdwa = 1u << 12, kModOffset = 1u << 13, kModOffset01 = 1u << 14, kModCache = 1u << 15,
  kModOffen = 1u << 16, kModIdxen = 1u << 17, kModLds = 1u << 18, kModGds = 1u << 19,
  kModBroadcast = 1u << 20 /* cbsz abid blgp */, kModBitop = 1u << 21, kModFormat = 1u << 22,
  kModSwizzle = 1u << 23, kModTfe = 1u << 24, kModBoundCtrl = 1u << 25,
};

enum class DppCtrl : uint8_t {
  none, quad_perm, row_shl, row_shr, row_ror, wave_shl, wave_rol, wave_shr, wave_ror, row_mirror,
  row_half_mirror, row_bcast, row_newbcast, row_share, row_xmask, dpp8,
};

enum class Sel : uint8_t { byte0, byte1, byte2, byte3, word0, word1, dword };
enum class Unused : uint8_t { pad, sext, preserve };

struct Dpp {
  DppCtrl ctrl = DppCtrl::none;
  uint8_t arg = 0;            // shift, row, or two bits per lane of a quad
  uint8_t row_mask = 15, bank_mask = 15;
  bool bound_ctrl = false, fi = false;
  uint8_t select[8] = {};     // dpp8
};

struct Sdwa {
  bool on = false;
  Sel dst = Sel::dword, src0 = Sel::dword, src1 = Sel::dword;
  Unused unused = Unused::preserve;
};

using Execute = void (*)(Wave&, const Insn&);

// Encoding classes: the key of counters, and of the wait states that a later check looks up.
enum class Class : uint8_t {
  sop1, sop2, sopc, sopk, sopp, smem, vop1, vop2, vop3, vop3p, vopc, vopd, vinterp, mfma, wmma, ds,
  flat, global, scratch, mubuf, mtbuf, unknown, count
};
const char* class_name(Class c);
// How much of a row's result is known: all bits; a result within one ulp of the true one; or what a
// model with a name says, where nobody has published the hardware's arithmetic.
enum class Promise : uint8_t { exact, within_ulp, model, count };
constexpr int tally_of(Class c, Promise p) {
  return static_cast<int>(c) * static_cast<int>(Promise::count) + static_cast<int>(p);
}
inline constexpr int kTallies = tally_of(Class::count, Promise::exact);
static_assert(kTallies < 256);
// What MODE.VSKIP leaves out: vector instructions and those of the memories behind VGPRs.
constexpr bool is_vector(Class c) { return c >= Class::vop1 && c <= Class::mtbuf; }

enum Role : uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };

struct Slot {
  Type type = Type::none;
  Role role = kRead;
  uint8_t dwords = 0;         // for Type::wide, and for a tuple of another type
};
inline constexpr int kMaxSlots = 8;

enum Arch : uint8_t { kGfx950 = 1, kGfx1151 = 2, kBoth = 3 };

// Facts about a row that a driver or a check needs and that the slots do not show.
enum RowFlag : uint32_t {
  kFpArith = 1u << 0,         // rounds: MODE.round applies
  kFpFlushIn = 1u << 1,       // MODE.denorm of the source type applies to inputs
  kImplicitVccRead = 1u << 2,
  kImplicitVccWrite = 1u << 3,
  kTrans = 1u << 4,           // transcendental unit
  kMergeHalf = 1u << 5,       // gfx9: a 16-bit result keeps the other half of D
  kIgnoresExec = 1u << 6,
  kWritesExec = 1u << 7,
  kReadsScc = 1u << 8, kWritesScc = 1u << 9,
  kReadsM0 = 1u << 10,
  kBranch = 1u << 11,
  kLoad = 1u << 12, kStore = 1u << 13, kAtomic = 1u << 14,
  kPacked = 1u << 15,         // op_sel picks halves per result half
  // Rows of one mnemonic that differ by a modifier: the one for `clamp`, and the one of an atomic
  // that returns the old value (sc0, glc), and the one of a load into LDS.
  kClampRow = 1u << 16, kReturnRow = 1u << 17, kLdsRow = 1u << 20,
  kWave64Row = 1u << 21,      // ... and the one of a WMMA in wave64, which has half the registers
  kExecOperand = 1u << 19,    // the first slot is EXEC and is not in the text (v_cmpx on gfx11)
  kFpNearest = 1u << 24,      // rounds to nearest whatever MODE.round says
  kOwnNan = 1u << 25,         // the body decides which NaN comes out
  kMixed = 1u << 26,          // op_sel_hi, 0 by default, makes a source f16 (v_fma_mix)
  kModel = 1u << 27,          // rounds as a named model does
  kPackedMove = 1u << 18,     // v_pk_mov_b32: one result dword from each source
};

constexpr Promise promise_of(uint32_t flags) {
  return flags & kModel ? Promise::model : flags & kTrans ? Promise::within_ulp : Promise::exact;
}

struct Row {
  const char* name = nullptr; // mnemonic without _e32, _e64, _dpp, _sdwa
  Class cls = Class::unknown;
  uint8_t archs = kBoth;
  Execute execute = nullptr;
  uint32_t mods = 0;          // modifiers that have a meaning here
  uint32_t flags = 0;
  uint8_t slots = 0;
  Slot slot[kMaxSlots] = {};
  uint32_t data = 0;          // private to the class: access width, branch condition, ...
  uint8_t optional = 0;       // trailing slots that the text may leave out
  Execute base = nullptr;     // the row that `execute` builds on (v_cmpx on gfx9)
};

struct Insn {
  Execute execute = nullptr;  // row->execute, or the refusal of something not understood
  const Row* row = nullptr;
  Class cls = Class::unknown;
  uint8_t bytes = 4;
  uint8_t tally = 0;          // which of Wave::counts it adds to
  uint8_t operands = 0;
  bool plain = false;         // no modifier that touches a source or the destination
  uint32_t mods = 0;          // modifiers present
  Operand op[kMaxSlots];
  int32_t offset = 0;
  uint8_t offset0 = 0, offset1 = 0;
  uint8_t op_sel = 0, op_sel_hi = 0xff, neg_lo = 0, neg_hi = 0;
  uint8_t op_sel_count = 0;   // elements printed; the last may be the destination's, see Binder
  bool clamp = false;
  uint8_t omod = 0;           // 1: *2, 2: *4, 3: /2
  bool offen = false, idxen = false, lds = false, gds = false;
  bool sc0 = false, sc1 = false, nt = false;    // glc, dlc, slc on gfx1151
  uint8_t cbsz = 0, abid = 0, blgp = 0;
  uint32_t imm = 0;           // bitop3 table, swizzle pattern, SOPP immediate
  Dpp dpp;
  Sdwa sdwa;
  int32_t target = -1;        // index of the branch target in the program
  uint16_t acc_row = 0;       // VGPR row of the addend of an accumulating op: D, except in VOPD
  const Insn* x = nullptr;    // VOPD: the two halves; x writes the spare row, copied last
  const Insn* y = nullptr;
  uint64_t pc = 0;            // loaded address
  uint32_t line = 0;          // index into Program::lines (0: unknown)
  const char* text = nullptr; // the disassembler's line
  const char* refusal = nullptr;  // why `execute` refuses
};

}  // namespace netra
