// Float dot products of two halves. gfx1151 follows the measured step (model gfx11_dot2). gfx950's
// adder is not public: under fma_chain it is fma(a1, b1, fma(a0, b0, c)), under exact one rounding;
// the ISA manual says that denormal sources and results are flushed. gfx1151 keeps f16 factors.
#include <string_view>

#include "chain.h"
#include "dot_models.h"
#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

float flushed(float x, float least = 0x1p-126f) {
  return std::fabs(x) < least ? std::copysign(0.0f, x) : x;
}

template <Type kOut, Elem kIn>
uint32_t dot2(const Wave& w, uint32_t x, uint32_t y, uint32_t c) {
  float a[2], b[2];
  for (int k = 0; k < 2; ++k) {
    a[k] = element_f32(kIn, x >> (16 * k));
    b[k] = element_f32(kIn, y >> (16 * k));
  }
  const MatrixModel model = matrix_model(w.gfx11);
  if (model == MatrixModel::gfx11_dot2)
    return gfx11_step<kOut, kIn == Elem::bf16>(a[0], b[0], a[1], b[1], c, w.mode & kModeFp16Ovfl);
  const float acc = kOut == Type::f16    ? f16_to_f32(c)
                    : kOut == Type::bf16 ? bf16_to_f32(c)
                                         : flushed(as_f32(c));
  const float least = kIn == Elem::bf16 ? 0x1p-126f : 0x1p-14f;
  if (kIn == Elem::bf16 || !w.gfx11)
    for (int k = 0; k < 2; ++k) a[k] = flushed(a[k], least), b[k] = flushed(b[k], least);
  const float r = model == MatrixModel::fma_chain ? chain_step(a[1], b[1], chain_step(a[0], b[0], acc))
                                                  : dot_model(model, kIn, a, b, 2, acc);
  return kOut == Type::f16 ? f32_to_f16(r) : kOut == Type::bf16 ? f32_to_bf16(r) : f32_bits(flushed(r));
}

// The halves of a source that op_sel and op_sel_hi pick, with neg_lo and neg_hi.
uint32_t picked(uint32_t x, const Insn& i, int source) {
  const uint32_t lo = (i.op_sel >> source & 1 ? x >> 16 : x & 0xffff) ^ (i.neg_lo >> source & 1u) << 15;
  const uint32_t hi = (i.op_sel_hi >> source & 1 ? x >> 16 : x & 0xffff) ^ (i.neg_hi >> source & 1u) << 15;
  return lo | hi << 16;
}

// The same without op_sel: the VOP2 forms. neg and abs of v_dot2c_f32_bf16_e64 arrive as neg_lo and
// neg_hi (bind_signs in program.cc).
uint32_t signed_halves(uint32_t x, const Insn& i, int source) {
  return x ^ (i.neg_lo >> source & 1u) << 15 ^ (i.neg_hi >> source & 1u) << 31;
}

#define NETRA_OP NETRA_OP_STRUCT
#include "../sem/dot2.inc"
#undef NETRA_OP

template <class Op>
constexpr Row dot2_row(const char* name, uint8_t archs) {
  const bool half = is_16bit(Op::D::type);
  Row r = valu_row<Op>(name, archs, half ? Class::vop3 : Op::kAcc ? Class::vop2 : Class::vop3p);
  const std::string_view text = name;
  const bool signs = text == "v_dot2c_f32_bf16";
  r.mods = kModDpp | kModDpp8 | kModBoundCtrl |
           (half        ? kModOpSel | kModHalf
            : Op::kAcc ? (signs ? kModNeg | kModAbs | kModClamp : 0u)
                       : kModOpSel | kModOpSelHi | kModNegLo | kModNegHi | kModClamp);
  r.flags |= kModel | kPacked | (half ? kMergeHalf : 0u);
  // An inline constant expands as an element does: into the low half.
  const Type in = text.find("bf16") != std::string_view::npos ? Type::bf16 : Type::f16;
  r.slot[1].type = r.slot[2].type = in;
  return r;
}

#define NETRA_OP(A, N, ...) dot2_row<N##_##A>(#N, A),
constexpr Row kRows[] = {
#include "../sem/dot2.inc"
};

}  // namespace

RowSpan dot2_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra::NETRA_HOST_NS
