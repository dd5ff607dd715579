// MFMA: D = C + A * B for gfx950, one driver over a table of shapes.
//
// Layouts (docs/simulator.md, "Matrix layouts"): lane L holds row L % M of block (L / M) % blocks,
// and the elements of K group L / (M * blocks); a group's elements are consecutive k, in register
// order from the lowest bit. EXEC and MODE have no influence.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "chain.h"
#include "dot_models.h"
#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

struct Shape {
  const char* name;
  uint8_t m, k, blocks;       // n == m
  Elem a, b;
};
constexpr Shape kShapes[] = {
    {"v_mfma_f32_32x32x1_2b_f32", 32, 1, 2, Elem::f32, Elem::f32},
    {"v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, Elem::f32, Elem::f32},
    {"v_mfma_f32_4x4x1_16b_f32", 4, 1, 16, Elem::f32, Elem::f32},
    {"v_mfma_f32_32x32x2_f32", 32, 2, 1, Elem::f32, Elem::f32},
    {"v_mfma_f32_16x16x4_f32", 16, 4, 1, Elem::f32, Elem::f32},
    {"v_mfma_f32_32x32x4_2b_f16", 32, 4, 2, Elem::f16, Elem::f16},
    {"v_mfma_f32_16x16x4_4b_f16", 16, 4, 4, Elem::f16, Elem::f16},
    {"v_mfma_f32_4x4x4_16b_f16", 4, 4, 16, Elem::f16, Elem::f16},
    {"v_mfma_f32_32x32x8_f16", 32, 8, 1, Elem::f16, Elem::f16},
    {"v_mfma_f32_16x16x16_f16", 16, 16, 1, Elem::f16, Elem::f16},
    {"v_mfma_f32_32x32x4_2b_bf16", 32, 4, 2, Elem::bf16, Elem::bf16},
    {"v_mfma_f32_16x16x4_4b_bf16", 16, 4, 4, Elem::bf16, Elem::bf16},
    {"v_mfma_f32_4x4x4_16b_bf16", 4, 4, 16, Elem::bf16, Elem::bf16},
    {"v_mfma_f32_32x32x8_bf16", 32, 8, 1, Elem::bf16, Elem::bf16},
    {"v_mfma_f32_16x16x16_bf16", 16, 16, 1, Elem::bf16, Elem::bf16},
    {"v_mfma_f32_16x16x32_f16", 16, 32, 1, Elem::f16, Elem::f16},
    {"v_mfma_f32_32x32x16_f16", 32, 16, 1, Elem::f16, Elem::f16},
    {"v_mfma_f32_16x16x32_bf16", 16, 32, 1, Elem::bf16, Elem::bf16},
    {"v_mfma_f32_32x32x16_bf16", 32, 16, 1, Elem::bf16, Elem::bf16},
    {"v_mfma_f32_16x16x32_fp8_fp8", 16, 32, 1, Elem::fp8, Elem::fp8},
    {"v_mfma_f32_16x16x32_fp8_bf8", 16, 32, 1, Elem::fp8, Elem::bf8},
    {"v_mfma_f32_16x16x32_bf8_fp8", 16, 32, 1, Elem::bf8, Elem::fp8},
    {"v_mfma_f32_16x16x32_bf8_bf8", 16, 32, 1, Elem::bf8, Elem::bf8},
    {"v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 1, Elem::fp8, Elem::fp8},
    {"v_mfma_f32_32x32x16_fp8_bf8", 32, 16, 1, Elem::fp8, Elem::bf8},
    {"v_mfma_f32_32x32x16_bf8_fp8", 32, 16, 1, Elem::bf8, Elem::fp8},
    {"v_mfma_f32_32x32x16_bf8_bf8", 32, 16, 1, Elem::bf8, Elem::bf8},
    {"v_mfma_i32_32x32x4_2b_i8", 32, 4, 2, Elem::i8, Elem::i8},
    {"v_mfma_i32_16x16x4_4b_i8", 16, 4, 4, Elem::i8, Elem::i8},
    {"v_mfma_i32_4x4x4_16b_i8", 4, 4, 16, Elem::i8, Elem::i8},
    {"v_mfma_i32_32x32x16_i8", 32, 16, 1, Elem::i8, Elem::i8},
    {"v_mfma_i32_16x16x32_i8", 16, 32, 1, Elem::i8, Elem::i8},
    {"v_mfma_i32_16x16x64_i8", 16, 64, 1, Elem::i8, Elem::i8},
    {"v_mfma_i32_32x32x32_i8", 32, 32, 1, Elem::i8, Elem::i8},
    {"v_mfma_f64_16x16x4_f64", 16, 4, 1, Elem::f64, Elem::f64},
    {"v_mfma_f64_4x4x4_4b_f64", 4, 4, 4, Elem::f64, Elem::f64},
    {"v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, Elem::f8f6f4, Elem::f8f6f4},
    {"v_mfma_f32_32x32x64_f8f6f4", 32, 64, 1, Elem::f8f6f4, Elem::f8f6f4},
    {"v_mfma_scale_f32_16x16x128_f8f6f4", 16, 128, 1, Elem::f8f6f4, Elem::f8f6f4},
    {"v_mfma_scale_f32_32x32x64_f8f6f4", 32, 64, 1, Elem::f8f6f4, Elem::f8f6f4},
};

constexpr int kMaxK = 128, kMaxM = 32;

// cbsz (A) and blgp (B) name the format of an f8f6f4 operand.
constexpr Elem kFormats[] = {Elem::fp8, Elem::bf8, Elem::fp6, Elem::bf6, Elem::fp4};

// The lane whose registers stand in for lane `l`. cbsz and abid: of each 2^cbsz neighbouring blocks
// of A, block abid stands for all. blgp permutes the lanes of B.
int a_lane(const Insn& i, const Shape& s, int l) {
  const int block = l / s.m;
  return ((block >> i.cbsz << i.cbsz) + i.abid) * s.m + l % s.m;
}
int b_lane(const Insn& i, int l) {
  switch (i.blgp) {
    case 0: return l;
    case 1: return l & 31;
    case 2: return (l & 31) + 32;
    case 3: return (l + 16) & 63;
    default: return (l & 15) + 16 * (i.blgp - 4);
  }
}

// Element `idx` of every lane of an operand.
void column(const Wave& w, const Operand& o, int bits, int idx, uint32_t* out) {
  const int at = idx * bits, shift = at % 32;
  const uint32_t* lo = w.row(o.index + static_cast<uint32_t>(at / 32));
  for (int l = 0; l < 64; ++l) out[l] = lo[l] >> shift;
  if (shift + bits > 32) {
    const uint32_t* hi = lo + w.lanes;
    for (int l = 0; l < 64; ++l) out[l] |= hi[l] << (32 - shift);
  }
}

// What a lane's element becomes: a float, exactly, or an integer.
template <Elem E>
struct Float {
  using value = float;
  static float of(uint32_t x) { return element_f32(E, x); }
};
struct Signed8 {
  using value = int32_t;
  static int32_t of(uint32_t x) { return static_cast<int8_t>(x); }
};

// The k of element idx in K group g. 8-bit f8f6f4 operands are split in two runs of 16.
int k_of(const Shape& s, Elem e, int per_lane, int g, int idx) {
  if (s.a == Elem::f8f6f4 && bits_of(e) == 8) {
    const int half = s.k / 2;
    return half * (idx / 16) + 16 * g + idx % 16;
  }
  return g * per_lane + idx;
}

// out[block][k][row], elements decoded by D. A segment is M lanes: the rows of one block and k.
template <int M, class D>
void gather(const Wave& w, const Insn& i, const Shape& s, const Operand& o, Elem e, bool is_a,
            typename D::value* out) {
  const int bits = bits_of(e), per_lane = s.blocks * M * s.k / 64;
  const bool moved = s.a != Elem::f8f6f4 && (is_a ? i.cbsz != 0 : i.blgp != 0);
  uint32_t raw[64];
  for (int idx = 0; idx < per_lane; ++idx) {
    const int at = idx * bits;
    int shift = at % 32;
    const uint32_t* from = w.row(o.index + static_cast<uint32_t>(at / 32));
    if (moved || shift + bits > 32) {
      uint32_t own[64];
      column(w, o, bits, idx, own);
      for (int l = 0; l < 64; ++l) raw[l] = own[!moved ? l : is_a ? a_lane(i, s, l) : b_lane(i, l)];
      from = raw, shift = 0;
    }
    for (int seg = 0; seg < 64 / M; ++seg) {
      const int block = seg % s.blocks, k = k_of(s, e, per_lane, seg / s.blocks, idx);
      const uint32_t* x = from + seg * M;
      typename D::value* to = out + (block * s.k + k) * M;
      NETRA_LANES
      for (int r = 0; r < M; ++r) to[r] = D::of(x[r] >> shift);
    }
  }
}
template <class D>
void gather_any(const Wave& w, const Insn& i, const Shape& s, const Operand& o, Elem e, bool is_a,
                typename D::value* out) {
  if (s.m == 32) gather<32, D>(w, i, s, o, e, is_a, out);
  else if (s.m == 16) gather<16, D>(w, i, s, o, e, is_a, out);
  else gather<4, D>(w, i, s, o, e, is_a, out);
}
void gather_floats(const Wave& w, const Insn& i, const Shape& s, const Operand& o, Elem e, bool is_a,
                   float* out) {
  switch (e) {
    case Elem::f32: return gather_any<Float<Elem::f32>>(w, i, s, o, e, is_a, out);
    case Elem::f16: return gather_any<Float<Elem::f16>>(w, i, s, o, e, is_a, out);
    case Elem::bf16: return gather_any<Float<Elem::bf16>>(w, i, s, o, e, is_a, out);
    case Elem::fp8: return gather_any<Float<Elem::fp8>>(w, i, s, o, e, is_a, out);
    case Elem::bf8: return gather_any<Float<Elem::bf8>>(w, i, s, o, e, is_a, out);
    case Elem::fp6: return gather_any<Float<Elem::fp6>>(w, i, s, o, e, is_a, out);
    case Elem::bf6: return gather_any<Float<Elem::bf6>>(w, i, s, o, e, is_a, out);
    case Elem::fp4: return gather_any<Float<Elem::fp4>>(w, i, s, o, e, is_a, out);
    default: return;
  }
}

// Where segment `seg` of register v lies in C, which is [block][row][column]: M lanes are the
// columns of one row.
int row_of(const Shape& s, int v, int seg) {
  if (s.m == 32) return 32 * (v / 16) + 8 * (v % 16 / 4) + 4 * seg + v % 4;
  if (s.m == 16) return 16 * (v / 4) + 4 * seg + v % 4;
  return 4 * seg + v;
}

void multiply(const Wave& w, const Shape& s, Elem type, const float* at, const float* bt, float* c) {
  const MatrixModel model = matrix_model(w.gfx11);
  if (model == MatrixModel::fma_chain || type == Elem::f32) {
    if (s.m == 32) chain<32>(at, bt, s.k, c);
    else if (s.m == 16) chain<16>(at, bt, s.k, c);
    else chain<4>(at, bt, s.k, c);
    return;
  }
  float a[kMaxK], b[kMaxK];
  for (int i = 0; i < s.m; ++i)
    for (int j = 0; j < s.m; ++j) {
      for (int k = 0; k < s.k; ++k) a[k] = at[k * s.m + i], b[k] = bt[k * s.m + j];
      c[i * s.m + j] = dot_model(model, type, a, b, s.k, c[i * s.m + j]);
    }
}

template <int M>
void read_rows(const Wave& w, const Shape& s, const Operand& o, uint32_t* c) {
  for (int v = 0; v < s.blocks * M * M / 64; ++v) {
    const uint32_t* from = w.row(o.index + static_cast<uint32_t>(v));
    for (int seg = 0; seg < 64 / M; ++seg) std::memcpy(c + row_of(s, v, seg) * M, from + seg * M, 4 * M);
  }
}
void read_c(const Wave& w, const Shape& s, const Operand& o, uint32_t* c) {
  if (o.kind != Kind::vgpr) std::fill_n(c, s.blocks * s.m * s.m, o.bits_lo);
  else if (s.m == 32) read_rows<32>(w, s, o, c);
  else if (s.m == 16) read_rows<16>(w, s, o, c);
  else read_rows<4>(w, s, o, c);
}
template <int M>
void write_rows(Wave& w, const Shape& s, const Operand& o, const uint32_t* c) {
  for (int v = 0; v < s.blocks * M * M / 64; ++v) {
    uint32_t* to = w.row(o.index + static_cast<uint32_t>(v));
    for (int seg = 0; seg < 64 / M; ++seg) std::memcpy(to + seg * M, c + row_of(s, v, seg) * M, 4 * M);
  }
}
void write_d(Wave& w, const Shape& s, const Operand& o, const uint32_t* c) {
  if (s.m == 32) write_rows<32>(w, s, o, c);
  else if (s.m == 16) write_rows<16>(w, s, o, c);
  else write_rows<4>(w, s, o, c);
}

// cbsz and abid broadcast blocks of A, so there must be more than one. blgp moves lanes of B in the
// forms of several blocks and in those of f32; CDNA3 took it from the others.
bool moves_legal(Wave& w, const Insn& i, const Shape& s) {
  const int limit = std::countr_zero(static_cast<unsigned>(s.blocks));
  if (i.cbsz > limit || i.abid >> i.cbsz) {
    fault(w, i, 719, s.blocks == 1 ? std::string("cbsz and abid have no meaning for a shape of one block")
                                   : "this shape takes a cbsz of 0 to " + std::to_string(limit) +
                                         " and an abid below 2^cbsz");
    return false;
  }
  if (i.blgp && s.blocks == 1 && s.a != Elem::f32) {
    fault(w, i, 719, "blgp has no meaning for this shape");
    return false;
  }
  return true;
}

void mfma_float(Wave& w, const Insn& i) {
  const Shape& s = kShapes[i.row->data];
  if (!moves_legal(w, i, s)) return;
  alignas(64) float at[kMaxK * kMaxM];
  alignas(64) float bt[kMaxK * kMaxM];
  alignas(64) float c[2 * 32 * 32];
  gather_floats(w, i, s, i.op[1], s.a, true, at);
  gather_floats(w, i, s, i.op[2], s.b, false, bt);
  read_c(w, s, i.op[3], reinterpret_cast<uint32_t*>(c));
  for (int b = 0; b < s.blocks; ++b)
    multiply(w, s, s.a, at + b * s.k * s.m, bt + b * s.k * s.m, c + b * s.m * s.m);
  write_d(w, s, i.op[0], reinterpret_cast<const uint32_t*>(c));
}

void mfma_i8(Wave& w, const Insn& i) {
  const Shape& s = kShapes[i.row->data];
  if (!moves_legal(w, i, s)) return;
  alignas(64) int32_t at[64 * 32];
  alignas(64) int32_t bt[64 * 32];
  alignas(64) uint32_t c[2 * 32 * 32];
  gather_any<Signed8>(w, i, s, i.op[1], s.a, true, at);
  gather_any<Signed8>(w, i, s, i.op[2], s.b, false, bt);
  read_c(w, s, i.op[3], c);
  for (int b = 0; b < s.blocks; ++b)
    for (int k = 0; k < s.k; ++k)
      for (int r = 0; r < s.m; ++r) {
        const int32_t a = at[(b * s.k + k) * s.m + r];
        for (int n = 0; n < s.m; ++n)
          c[(b * s.m + r) * s.m + n] += static_cast<uint32_t>(a * bt[(b * s.k + k) * s.m + n]);
      }
  write_d(w, s, i.op[0], c);
}

// f64: bits of blgp negate A, B and C. The result has its own layout: row 4 v + L / 16 for 16x16.
void mfma_f64(Wave& w, const Insn& i) {
  const Shape& s = kShapes[i.row->data];
  if (i.cbsz || i.abid) return fault(w, i, 719, "cbsz and abid have no meaning for f64");
  const auto element = [&](const Operand& o, int v, int lane) {
    if (o.kind != Kind::vgpr) return as_f64(static_cast<uint64_t>(o.bits_hi) << 32 | o.bits_lo);
    const uint32_t* r = w.row(o.index + static_cast<uint32_t>(2 * v));
    return as_f64(static_cast<uint64_t>(r[w.lanes + static_cast<uint32_t>(lane)]) << 32 | r[lane]);
  };
  const double sign_a = i.blgp & 1 ? -1 : 1, sign_b = i.blgp & 2 ? -1 : 1, sign_c = i.blgp & 4 ? -1 : 1;
  double d[4][64];
  const int count = s.m == 16 ? 4 : 1;
  for (int v = 0; v < count; ++v)
    for (int l = 0; l < 64; ++l) {
      const int row = s.m == 16 ? 4 * v + l / 16 : l / 16;
      const int block = s.m == 16 ? 0 : l / 4 % 4, col = l % s.m;
      double acc = sign_c * element(i.op[3], v, l);
      for (int k = 0; k < 4; ++k) {
        const int a = row + s.m * (block + s.blocks * k), b = col + s.m * (block + s.blocks * k);
        acc = chain_step(sign_a * element(i.op[1], 0, a), sign_b * element(i.op[2], 0, b), acc);
      }
      d[v][l] = acc;
    }
  for (int v = 0; v < count; ++v) {
    uint32_t* r = w.row(i.op[0].index + static_cast<uint32_t>(2 * v));
    for (uint32_t l = 0; l < 64; ++l) {
      r[l] = static_cast<uint32_t>(f64_bits(d[v][l]));
      r[w.lanes + l] = static_cast<uint32_t>(f64_bits(d[v][l]) >> 32);
    }
  }
}

// f8f6f4, with or without scales: E8M0 per row (or column) and block of 32 consecutive k.
template <bool kScaled>
void mfma_f8f6f4(Wave& w, const Insn& i) {
  const Shape& s = kShapes[i.row->data];
  if (i.cbsz > 4 || i.blgp > 4) return fault(w, i, 719, "cbsz and blgp name formats 0 to 4 here");
  const Elem ea = kFormats[i.cbsz], eb = kFormats[i.blgp];
  const auto registers = [](Elem e) { return bits_of(e) == 8 ? 8 : bits_of(e) == 6 ? 6 : 4; };
  if (i.op[1].dwords != registers(ea) || i.op[2].dwords != registers(eb))
    return fault(w, i, 719, "operand sizes do not fit the formats of cbsz and blgp");
  alignas(64) float at[kMaxK * kMaxM];
  alignas(64) float bt[kMaxK * kMaxM];
  alignas(64) float c[32 * 32];
  gather_floats(w, i, s, i.op[1], ea, true, at);
  gather_floats(w, i, s, i.op[2], eb, false, bt);
  read_c(w, s, i.op[3], reinterpret_cast<uint32_t*>(c));
  if constexpr (kScaled) {
    const auto scale = [&](int slot, int source, int block, int row) {
      const Operand& o = i.op[slot];
      const int byte = (i.op_sel >> source & 1) | (i.op_sel_hi >> source & 1) << 1;
      const uint32_t x = o.kind == Kind::vgpr ? w.row(o.index)[block * s.m + row] : read_scalar(w, o);
      return static_cast<int>(x >> (8 * byte) & 0xff);
    };
    for (int operand = 0; operand < 2; ++operand) {
      float* x = operand ? bt : at;
      for (int k = 0; k < s.k; ++k)
        for (int r = 0; r < s.m; ++r) {
          const int e = scale(4 + operand, operand, k / 32, r);
          float& value = x[k * s.m + r];
          const bool finite = !is_inf(value) && !is_nan(value);
          value = e == 255 ? std::numeric_limits<float>::quiet_NaN() : value * as_f32(e ? static_cast<uint32_t>(e) << 23 : 0x00400000);
          // The product with the other operand may still be small: no silent infinity.
          if (finite && is_inf(value))
            return fault(w, i, 719, "a scaled element leaves the range of f32, which the models compute in");
        }
    }
  }
  multiply(w, s, ea, at, bt, c);
  write_d(w, s, i.op[0], reinterpret_cast<const uint32_t*>(c));
}

constexpr Row shape_row(uint32_t index) {
  const Shape& s = kShapes[index];
  Row r;
  r.name = s.name;
  r.cls = Class::mfma;
  r.archs = gfx9;
  r.flags = kIgnoresExec | (s.a == Elem::i8 ? 0u : kModel);
  r.mods = kModBroadcast;
  r.data = index;
  const bool f64 = s.a == Elem::f64, flexible = s.a == Elem::f8f6f4;
  const auto regs = [&](Elem e) { return static_cast<uint8_t>(s.blocks * s.m * s.k * bits_of(e) / 64 / 32); };
  const uint8_t out = static_cast<uint8_t>(s.blocks * s.m * s.m / 64 * (f64 ? 2 : 1));
  r.slot[r.slots++] = {Type::wide, kWrite, out};
  r.slot[r.slots++] = {Type::wide, kRead, flexible ? uint8_t{0} : regs(s.a)};
  r.slot[r.slots++] = {Type::wide, kRead, flexible ? uint8_t{0} : regs(s.b)};
  r.slot[r.slots++] = {f64 ? Type::f64 : Type::wide, kRead, out};
  const std::string_view name = s.name;
  const bool scaled = name.find("scale") != std::string_view::npos;
  if (scaled) {
    r.mods |= kModOpSel | kModOpSelHi;
    r.slot[r.slots++] = {Type::b32, kRead, 0};
    r.slot[r.slots++] = {Type::b32, kRead, 0};
  }
  r.execute = f64 ? &mfma_f64 : s.a == Elem::i8 ? &mfma_i8
              : !flexible ? &mfma_float : scaled ? &mfma_f8f6f4<true> : &mfma_f8f6f4<false>;
  return r;
}

constexpr size_t kCount = sizeof kShapes / sizeof *kShapes;
struct Table {
  Row rows[kCount];
  constexpr Table() : rows{} {
    for (uint32_t k = 0; k < kCount; ++k) rows[k] = shape_row(k);
  }
};
constexpr Table kTable;

}  // namespace

RowSpan mfma_rows() { return {kTable.rows, kCount}; }

}  // namespace netra::NETRA_HOST_NS
