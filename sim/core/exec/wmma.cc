// WMMA: D = C + A * B, 16x16x16, for gfx1151 in wave32 and wave64.
//
// A row and B column are L % 16; lanes 16 and up must repeat lanes 0..15 (checked). Element k of a
// row: halves, bytes or nibbles in register order. C and D: column L % 16, row 2 v + L / 16 in
// wave32, 4 v + L / 16 in wave64; 16-bit results sit in the half that op_sel[2] names.
#include <algorithm>
#include <cstring>

#include "chain.h"
#include "dot_models.h"
#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

constexpr int kN = 16;

struct Form {
  const char* name;
  Elem in;
  Type out;
  Execute chain;   // under fma_chain; null for integers
};
template <Elem E, Type kOut>
void wmma_chain(Wave& w, const Insn& i);

constexpr Form kForms[] = {
    {"v_wmma_f32_16x16x16_f16", Elem::f16, Type::f32, &wmma_chain<Elem::f16, Type::f32>},
    {"v_wmma_f32_16x16x16_bf16", Elem::bf16, Type::f32, &wmma_chain<Elem::bf16, Type::f32>},
    {"v_wmma_f16_16x16x16_f16", Elem::f16, Type::f16, &wmma_chain<Elem::f16, Type::f16>},
    {"v_wmma_bf16_16x16x16_bf16", Elem::bf16, Type::bf16, &wmma_chain<Elem::bf16, Type::bf16>},
    {"v_wmma_i32_16x16x16_iu8", Elem::i8, Type::i32, nullptr},
    {"v_wmma_i32_16x16x16_iu4", Elem::i4, Type::i32, nullptr},
};

// WMMA reads lanes 0 to 15; the others must repeat them. False after a fault.
bool repeated(Wave& w, const Insn& i, int slot, int bits) {
  for (int n = 0; n < kN * bits / 32; ++n) {
    const uint32_t* r = w.row(i.op[slot].index + static_cast<uint32_t>(n));
    for (uint32_t l = kN; l < w.lanes; l += kN) {
      if (std::memcmp(r, r + l, kN * sizeof *r) == 0) [[likely]] continue;
      const auto at = static_cast<uint32_t>(std::mismatch(r, r + kN, r + l).first - r);
      fault(w, i, 719, "lane " + std::to_string(l + at) + " of operand " + std::to_string(slot + 1) +
                           " differs from lane " + std::to_string(at) + ": WMMA needs the lanes repeated");
      return false;
    }
  }
  return true;
}

// x[row][k] of A, or x[col][k] of B, as raw elements.
void read_operand(const Wave& w, const Insn& i, int slot, int bits, uint32_t (*x)[kN]) {
  for (int k = 0; k < kN; ++k) {
    const uint32_t* r = w.row(i.op[slot].index + static_cast<uint32_t>(k * bits / 32));
    const int shift = k * bits % 32;
    for (int l = 0; l < kN; ++l) x[l][k] = r[l] >> shift & ((1u << bits) - 1);
  }
}

// One output element under any other model: k pairs in ascending order.
template <Type kOut>
uint32_t element(const Wave& w, Elem type, const float* a, const float* b, uint32_t c) {
  const MatrixModel model = matrix_model(w.gfx11);
  if (model == MatrixModel::gfx11_dot2) {
    const bool saturate = w.mode & kModeFp16Ovfl;
    for (int k = 0; k < kN; k += 2)
      c = type == Elem::bf16 ? gfx11_step<kOut, true>(a[k], b[k], a[k + 1], b[k + 1], c, saturate)
                             : gfx11_step<kOut, false>(a[k], b[k], a[k + 1], b[k + 1], c, saturate);
    return c;
  }
  float acc = kOut == Type::f16 ? f16_to_f32(c) : kOut == Type::bf16 ? bf16_to_f32(c) : as_f32(c);
  acc = dot_model(model, type, a, b, kN, acc);
  return kOut == Type::f16 ? f32_to_f16(acc) : kOut == Type::bf16 ? f32_to_bf16(acc) : f32_bits(acc);
}

uint32_t saturate_i32(int64_t x) {
  return static_cast<uint32_t>(static_cast<int32_t>(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x));
}

// A as [k][row], B as [k][column]; neg_lo and neg_hi are the signs of even and odd k.
template <Elem E>
void transposed(const Wave& w, const Insn& i, int slot, float* out) {
  constexpr int kBits = bits_of(E);
  for (int k = 0; k < kN; ++k) {
    const uint32_t* r = w.row(i.op[slot].index + static_cast<uint32_t>(k * kBits / 32));
    const uint32_t sign = ((k & 1 ? i.neg_hi : i.neg_lo) >> (slot - 1) & 1u) << 31;
    const int shift = k * kBits % 32;
    NETRA_LANES
    for (int l = 0; l < kN; ++l) out[k * kN + l] = as_f32(f32_bits(element_f32(E, r[l] >> shift)) ^ sign);
  }
}

// Floats under fma_chain, as one block. C and D are kOut, a 16-bit one in the half of op_sel[2].
template <Elem E, Type kOut>
void wmma_chain(Wave& w, const Insn& i) {
  constexpr bool kHalf = is_16bit(kOut);
  alignas(64) float a[kN * kN], b[kN * kN], c[kN * kN];
  transposed<E>(w, i, 1, a);
  transposed<E>(w, i, 2, b);
  const Operand& o = i.op[3];
  const int shift = kHalf && (i.op_sel >> 2 & 1) ? 16 : 0, lanes = static_cast<int>(w.lanes);
  const uint32_t sign = kHalf ? 0x8000 : 0x80000000;
  const uint32_t keep = i.neg_hi >> 2 & 1 ? ~sign : ~0u, flip = i.neg_lo >> 2 & 1 ? sign : 0;   // abs, then neg
  const auto to_float = [](uint32_t x) {
    return kOut == Type::f16 ? f16_to_f32(x) : kOut == Type::bf16 ? bf16_to_f32(x) : as_f32(x);
  };
  const auto from_float = [](float x) {
    return kOut == Type::f16 ? f32_to_f16(x) : kOut == Type::bf16 ? f32_to_bf16(x) : f32_bits(x);
  };
  for (int at = 0; at < kN * kN; at += lanes) {
    const uint32_t* r = o.kind == Kind::vgpr ? w.row(o.index + static_cast<uint32_t>(at / lanes)) : nullptr;
    const uint32_t scalar = r ? 0 : read_scalar(w, o);
    for (int l = 0; l < lanes; ++l) {
      const uint32_t x = !r ? scalar : kHalf ? r[l] >> shift & 0xffff : r[l];
      c[at + l] = to_float((x & keep) ^ flip);
    }
  }
  chain<kN>(a, b, kN, c);
  for (int at = 0; at < kN * kN; at += lanes) {
    uint32_t* d = w.row(i.op[0].index + static_cast<uint32_t>(at / lanes));
    for (int l = 0; l < lanes; ++l) {
      const uint32_t x = from_float(c[at + l]);
      d[l] = kHalf ? (d[l] & ~(0xffffu << shift)) | x << shift : x;
    }
  }
}

void wmma(Wave& w, const Insn& i) {
  const Form& f = kForms[i.row->data];
  const int bits = bits_of(f.in);
  if (!repeated(w, i, 1, bits) || !repeated(w, i, 2, bits)) return;
  if (f.chain && matrix_model(w.gfx11) == MatrixModel::fma_chain) return f.chain(w, i);
  uint32_t a[kN][kN], b[kN][kN];
  read_operand(w, i, 1, bits, a);
  read_operand(w, i, 2, bits, b);
  const bool integer = f.out == Type::i32, half = is_16bit(f.out);
  float fa[kN][kN] = {}, fb[kN][kN] = {};
  int32_t ia[kN][kN] = {}, ib[kN][kN] = {};
  // neg_lo and neg_hi: the sign of even and odd k for floats; signedness of A and B for integers.
  const auto convert = [&](const uint32_t (*x)[kN], int operand, float (*fx)[kN], int32_t (*ix)[kN]) {
    const bool is_signed = i.neg_lo >> operand & 1;
    const Elem e = f.in == Elem::i8 ? (is_signed ? Elem::i8 : Elem::u8) : f.in == Elem::i4 ? (is_signed ? Elem::i4 : Elem::u4) : f.in;
    for (int r = 0; r < kN; ++r)
      for (int k = 0; k < kN; ++k) {
        if (integer) {
          ix[r][k] = element_i32(e, x[r][k]);
        } else {
          const bool flip = (k & 1 ? i.neg_hi : i.neg_lo) >> operand & 1;
          const float v = element_f32(f.in, x[r][k]);
          fx[r][k] = flip ? -v : v;
        }
      }
  };
  convert(a, 0, fa, ia);
  convert(b, 1, fb, ib);
  const int rows_per_reg = static_cast<int>(w.lanes) / kN, registers = kN / rows_per_reg;
  const int shift = half && (i.op_sel >> 2 & 1) ? 16 : 0;
  uint32_t out[8][64];
  for (int v = 0; v < registers; ++v)
    for (uint32_t l = 0; l < w.lanes; ++l) {
      const int row = rows_per_reg * v + static_cast<int>(l) / kN, col = static_cast<int>(l) % kN;
      const Operand& o = i.op[3];
      uint32_t c = o.kind == Kind::vgpr ? w.row(o.index + static_cast<uint32_t>(v))[l] : read_scalar(w, o);
      if (o.kind == Kind::vgpr && half) c = c >> shift & 0xffff;
      if (!integer) {
        const uint32_t sign = half ? 0x8000 : 0x80000000;
        if (i.neg_hi >> 2 & 1) c &= ~sign;   // abs, then neg
        if (i.neg_lo >> 2 & 1) c ^= sign;
      }
      uint32_t& d = out[v][l];
      if (integer) {
        int64_t sum = static_cast<int32_t>(c);
        for (int k = 0; k < kN; ++k) sum += static_cast<int64_t>(ia[row][k]) * ib[col][k];
        d = i.clamp ? saturate_i32(sum) : static_cast<uint32_t>(sum);
      } else if (f.out == Type::f32) {
        d = element<Type::f32>(w, f.in, fa[row], fb[col], c);
      } else if (f.out == Type::f16) {
        d = element<Type::f16>(w, f.in, fa[row], fb[col], c);
      } else {
        d = element<Type::bf16>(w, f.in, fa[row], fb[col], c);
      }
    }
  for (int v = 0; v < registers; ++v) {
    uint32_t* d = w.row(i.op[0].index + static_cast<uint32_t>(v));
    for (uint32_t l = 0; l < w.lanes; ++l)
      d[l] = half ? (d[l] & ~(0xffffu << shift)) | out[v][l] << shift : out[v][l];
  }
}

constexpr Row form_row(uint32_t index, bool wave64) {
  const Form& f = kForms[index];
  Row r;
  r.name = f.name;
  r.cls = Class::wmma;
  r.archs = gfx11;
  r.execute = &wmma;
  r.flags = kIgnoresExec | (f.out == Type::i32 ? 0u : kModel) | (wave64 ? kWave64Row : 0u);
  r.mods = kModNegLo | kModNegHi | (f.out == Type::i32 ? kModClamp : is_16bit(f.out) ? kModOpSel : 0u);
  r.data = index;
  const uint8_t in = static_cast<uint8_t>(kN * bits_of(f.in) / 32), acc = wave64 ? 4 : 8;
  r.slot[r.slots++] = {Type::wide, is_16bit(f.out) ? kReadWrite : kWrite, acc};
  r.slot[r.slots++] = {Type::wide, kRead, in};
  r.slot[r.slots++] = {Type::wide, kRead, in};
  r.slot[r.slots++] = {f.out == Type::i32 ? Type::i32 : f.out, kRead, acc};
  return r;
}

constexpr size_t kCount = sizeof kForms / sizeof *kForms;
struct Table {
  Row rows[2 * kCount];
  constexpr Table() : rows{} {
    for (uint32_t k = 0; k < kCount; ++k) {
      rows[2 * k] = form_row(k, false);
      rows[2 * k + 1] = form_row(k, true);
    }
  }
};
constexpr Table kTable;

}  // namespace

RowSpan wmma_rows() { return {kTable.rows, 2 * kCount}; }

}  // namespace netra::NETRA_HOST_NS
