// Conversions to and from FP8, BF8, FP6, BF6 and FP4, with a scale (v_cvt_scalef32_*) or stochastic
// rounding (v_cvt_sr_*). One driver reads what a row is from Row::data; v_cvt_f32_fp8 and its like,
// which have SDWA and DPP forms, are ordinary rows in vop1.inc.
//
//   from, to     formats; the narrow one is packed, element k at bit k * width
//   count        elements of the result: 1, 2 or 32
//   two          two sources, one value each (2xpk16: 16 each, taken in turns)
//   random       a source, from which each element takes the next state of the generator
//   scale        a source, of which only the exponent counts: to a narrow format divides by it, from
//                one multiplies
//
// A result of 16 or 8 bits goes to the half or byte of D that op_sel[3:2] names, and the rest of D
// stays. A narrow source of 16 or 8 bits is the half or byte that op_sel[1:0] names.
#include <cstring>
#include <string>

#include "narrow.h"
#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

constexpr uint32_t kTwoSources = 1u << 16, kRandom = 1u << 17, kScale = 1u << 18;
constexpr uint32_t form(Elem from, Elem to, uint32_t count, uint32_t flags) {
  return static_cast<uint32_t>(from) | static_cast<uint32_t>(to) << 4 | count << 8 | flags;
}

struct Conversion {
  Elem from, to;
  uint32_t count;
  bool two, random, scale;
  explicit Conversion(uint32_t data)
      : from(static_cast<Elem>(data & 15)), to(static_cast<Elem>(data >> 4 & 15)),
        count(data >> 8 & 0xff), two(data & kTwoSources), random(data & kRandom),
        scale(data & kScale) {}
  uint32_t source_bits() const { return count / (two ? 2 : 1) * static_cast<uint32_t>(bits_of(from)); }
  uint32_t result_bits() const { return count * static_cast<uint32_t>(bits_of(to)); }
};

uint32_t read_lane(const Wave& w, const Operand& o, uint32_t dword, uint32_t lane) {
  return o.kind == Kind::vgpr ? w.row(o.index + dword)[lane]
                              : read_scalar(w, o, static_cast<int>(dword));
}

uint32_t field(const uint32_t* words, uint32_t bit, uint32_t width) {
  const uint64_t two = words[bit / 32] |
                       static_cast<uint64_t>(bit % 32 + width > 32 ? words[bit / 32 + 1] : 0) << 32;
  return static_cast<uint32_t>(two >> bit % 32 & ((1ull << width) - 1));
}
void put_field(uint32_t* words, uint32_t bit, uint32_t width, uint32_t value) {
  words[bit / 32] |= value << bit % 32;
  if (bit % 32 + width > 32) words[bit / 32 + 1] |= value >> (32 - bit % 32);
}

bool narrow_format(Elem e) { return bits_of(e) < 16; }

// What of op_sel has a meaning: bits of the destination's part, and of the source's.
uint32_t selectors(const Conversion& f) {
  const uint32_t to = f.result_bits() == 16 ? 8u : f.result_bits() == 8 ? 12u : 0u;
  const uint32_t from = !narrow_format(f.from) ? 0u : f.source_bits() == 16 ? 1u : f.source_bits() == 8 ? 3u : 0u;
  return to | from;
}

// Why this use of the row is not defined; null when it is.
const char* undefined(const Wave& w, const Insn& i, const Conversion& f) {
  if (i.op_sel & ~selectors(f)) return "op_sel names a part that this conversion does not have";
  if (w.mode & kModeGprIdx) return "register indexing by s_set_gpr_idx is not defined here";
  for (uint32_t k = 1; k <= (f.two ? 2u : 1u); ++k) {
    const Operand& o = i.op[k];
    if ((o.neg || o.abs) && (f.from != Elem::f32 || f.source_bits() != 32))
      return "neg and abs are not defined on packed values";
    if (o.kind == Kind::constant && !o.literal && f.from != Elem::f32)
      return "an inline constant is not defined as a packed value";
  }
  return nullptr;
}

void convert(Wave& w, const Insn& i) {
  const Conversion f(i.row->data);
  if (const char* why = undefined(w, i, f)) return fault(w, i, 719, why);
  sync_exec(w);
  const uint32_t in_bits = f.source_bits(), out_bits = f.result_bits();
  const uint32_t in_dwords = (in_bits + 31) / 32, out_dwords = (out_bits + 31) / 32;
  const uint32_t sources = f.two ? 2 : 1;
  const Operand* random = f.random ? &i.op[1 + sources] : nullptr;
  const Operand* scale = f.scale ? &i.op[1 + sources + f.random] : nullptr;
  const bool narrow_source = narrow_format(f.from);
  const uint32_t in_at = narrow_source && in_bits <= 16 ? (i.op_sel & 3u) * in_bits : 0;
  const uint32_t out_at = out_bits == 16 ? (i.op_sel >> 3 & 1) * 16u : out_bits == 8 ? (i.op_sel >> 2 & 3) * 8u : 0;
  const bool saturate = w.mode & kModeFp16Ovfl;
  const bool flush_in = f.from == Elem::f32 && !(w.mode & 0x10);
  const bool flush_out = f.to == Elem::f32 && !(w.mode & 0x20);
  const uint32_t in_width = static_cast<uint32_t>(bits_of(f.from)), out_width = static_cast<uint32_t>(bits_of(f.to));
  const RoundingRule how = f.random ? RoundingRule::stochastic : RoundingRule::nearest;

  for (uint32_t lane = 0; lane < w.lanes; ++lane) {
    if (!w.lane_rows[lane]) continue;
    uint32_t in[2][32 + 1] = {}, out[32 + 1] = {};
    for (uint32_t k = 0; k < sources; ++k)
      for (uint32_t d = 0; d < in_dwords; ++d) {
        uint32_t word = read_lane(w, i.op[1 + k], d, lane);
        if (i.op[1 + k].abs) word &= 0x7fffffff;
        if (i.op[1 + k].neg) word ^= 0x80000000;
        in[k][d] = word;
      }
    uint32_t state = random ? read_lane(w, *random, 0, lane) : 0;
    const uint32_t exponent = scale ? read_lane(w, *scale, 0, lane) >> 23 & 0xff : 127;
    for (uint32_t e = 0; e < f.count; ++e) {
      const uint32_t from = f.two ? e % 2 : 0, at = f.two ? e / 2 : e;
      const uint32_t code = field(in[from], in_at + at * in_width, in_width);
      Number n = taken_apart(element_f32(f.from, code));
      if (flush_in && n.kind == Number::finite && !(n.mantissa & 0x800000)) n.mantissa = 0;
      if (exponent == 255) n.kind = Number::nan;   // E8M0's NaN
      if (n.kind == Number::nan && (narrow_source || f.scale)) n.mantissa = 0;   // no payload
      if (n.kind == Number::finite) {
        const int by = static_cast<int>(exponent) - 127;
        n.exponent += narrow_source ? by : -by;
      }
      uint32_t result = encoded(f.to, n, saturate, how, state);
      if (flush_out && !(result & 0x7f800000)) result &= 0x80000000;
      put_field(out, e * out_width, out_width, result);
      state = next_random(state);
    }
    if (out_bits < 32) {
      uint32_t& d = w.row(i.op[0].index)[lane];
      const uint32_t mask = ((1u << out_bits) - 1) << out_at;
      d = (d & ~mask) | out[0] << out_at;
    } else {
      for (uint32_t d = 0; d < out_dwords; ++d) w.row(i.op[0].index + d)[lane] = out[d];
    }
  }
}

constexpr Row cvt_row(const char* name, Elem from, Elem to, uint32_t count, uint32_t flags) {
  Row r;
  r.name = name;
  r.cls = Class::vop3;
  r.archs = kGfx950;
  r.execute = &convert;
  r.data = form(from, to, count, flags);
  const uint32_t sources = flags & kTwoSources ? 2 : 1;
  const uint32_t in = (count / sources * static_cast<uint32_t>(bits_of(from)) + 31) / 32;
  const uint32_t out_bits = count * static_cast<uint32_t>(bits_of(to)), out = (out_bits + 31) / 32;
  const bool values = from == Elem::f32 && in == 1;
  r.mods = kModNeg | kModAbs | kModOpSel;
  r.flags = out_bits < 32 ? kMergeHalf : 0u;
  // Which random bits take part is published for FP8 and BF8 only.
  if (flags & kRandom && to != Elem::fp8 && to != Elem::bf8) r.flags |= kModel;
  const auto add = [&r](Type t, Role role, uint32_t dwords) {
    r.slot[r.slots++] = {t, role, static_cast<uint8_t>(dwords > 1 ? dwords : 0)};
  };
  add(out > 1 ? Type::wide : Type::b32, out_bits < 32 ? kReadWrite : kWrite, out);
  for (uint32_t k = 0; k < sources; ++k) add(in > 1 ? Type::wide : values ? Type::f32 : Type::b32, kRead, in);
  if (flags & kRandom) add(Type::u32, kRead, 1);
  if (flags & kScale) add(Type::f32, kRead, 1);
  return r;
}

#define CVT(N, FROM, TO, COUNT, FLAGS) cvt_row(#N, Elem::FROM, Elem::TO, COUNT, FLAGS),
constexpr Row kRows[] = {
#include "../sem/cvt.inc"
};

}  // namespace

RowSpan cvt_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra::NETRA_HOST_NS
