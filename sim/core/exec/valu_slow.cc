// Row transformations behind the vector ALU driver: what modifiers and MODE do to a source before
// the lane loop, and to the result after it.
#include "valu.h"

#include <cstring>

namespace netra::NETRA_HOST_NS {

void refresh_lane_rows(Wave& w) {
  w.mask_exec = w.exec();
  expand_bits(w.mask_exec, w.lane_rows);
}

namespace {

// The lane that DPP reads for lane l; -1 when the control names none.
int dpp_source(const Dpp& d, int l, int lanes) {
  const int row = l & ~15, n = l & 15, k = d.arg;
  switch (d.ctrl) {
    case DppCtrl::quad_perm: return (l & ~3) | (k >> (2 * (l & 3)) & 3);
    case DppCtrl::row_shl: return n + k < 16 ? l + k : -1;
    case DppCtrl::row_shr: return n >= k ? l - k : -1;
    case DppCtrl::row_ror: return row + ((n - k) & 15);
    case DppCtrl::wave_shl: return l + 1 < lanes ? l + 1 : -1;
    case DppCtrl::wave_rol: return (l + 1) & (lanes - 1);
    case DppCtrl::wave_shr: return l - 1;
    case DppCtrl::wave_ror: return (l - 1) & (lanes - 1);
    case DppCtrl::row_mirror: return row + 15 - n;
    case DppCtrl::row_half_mirror: return (l & ~7) + 7 - (l & 7);
    case DppCtrl::row_bcast: return k == 15 ? (l >= 16 ? row - 1 : -1) : (l >= 32 ? 31 : -1);
    case DppCtrl::row_newbcast:
    case DppCtrl::row_share: return row + k;
    case DppCtrl::row_xmask: return row + (n ^ k);
    case DppCtrl::dpp8: return (l & ~7) | d.select[l & 7];
    case DppCtrl::none: break;
  }
  return l;
}

// Whether lane l gets a value through DPP, and from where; `zero` when it reads 0 instead.
// An inactive source follows the bound_ctrl rule (docs/simulator.md, "DPP").
bool dpp_reads(const Wave& w, const Dpp& d, int l, int* from, bool* zero) {
  const int s = dpp_source(d, l, static_cast<int>(w.lanes));
  *from = s;
  *zero = false;
  if (s >= 0 && (d.fi || (w.mask_exec >> s & 1))) return true;
  if (d.ctrl == DppCtrl::dpp8 || d.bound_ctrl) {
    *zero = true;
    return true;
  }
  return false;
}

uint32_t select(uint32_t x, Sel sel, bool sext) {
  switch (sel) {
    case Sel::word0: return sext ? static_cast<uint32_t>(static_cast<int16_t>(x)) : x & 0xffff;
    case Sel::word1: return sext ? static_cast<uint32_t>(static_cast<int32_t>(x) >> 16) : x >> 16;
    case Sel::dword: return x;
    default: {
      const uint32_t b = x >> (8 * static_cast<int>(sel)) & 0xff;
      return sext ? static_cast<uint32_t>(static_cast<int8_t>(b)) : b;
    }
  }
}

// The bit that abs and neg act on.
uint32_t sign_bit(Type t) { return is_16bit(t) ? 0x8000u : 0x80000000u; }

void flush_inputs(Type type, uint32_t* lo, uint32_t* hi, int lanes) {
  for (int l = 0; l < lanes; ++l) {
    if (type == Type::f32) {
      if (!(lo[l] & 0x7f800000)) lo[l] &= 0x80000000;
    } else if (type == Type::f16) {
      if (!(lo[l] & 0x7c00)) lo[l] &= 0x8000;
    } else if (type == Type::f64) {
      if (!(hi[l] & 0x7ff00000)) hi[l] &= 0x80000000, lo[l] = 0;
    }
  }
}

}  // namespace

Lanes fetch_slow(const Wave& w, const Insn& i, const Operand& o, Type type, int which,
                 uint32_t* tmp) {
  const int lanes = static_cast<int>(w.lanes);
  const bool two = dwords_of(type) == 2;
  Operand from = o;
  if (w.mode & kModeGprIdx && o.kind == Kind::vgpr && which < 3 &&
      (w.s[kM0] >> (12 + which) & 1))
    from.index = static_cast<uint16_t>(o.index + (w.s[kM0] & 0xff));
  // A register past the allocation through indexing reads register 0, as the hardware has it.
  if (from.kind == Kind::vgpr && from.index + (two ? 1u : 0u) >= w.vgprs + 1u) from.index = 0;
  const Lanes plain = fetch_plain(w, from, two, tmp);
  uint32_t* lo = tmp;
  uint32_t* hi = tmp + 64;
  if (which == 0 && i.dpp.ctrl != DppCtrl::none) {
    uint32_t permuted[128];
    for (int l = 0; l < lanes; ++l) {
      int s;
      bool zero;
      const bool reads = dpp_reads(w, i.dpp, l, &s, &zero);
      permuted[l] = !reads || zero ? 0 : plain.lo[s];
      permuted[64 + l] = !reads || zero || !two ? 0 : plain.hi[s];
    }
    std::memcpy(tmp, permuted, sizeof permuted);
  } else if (plain.lo != tmp) {
    std::memcpy(lo, plain.lo, static_cast<size_t>(lanes) * 4);
    if (two) std::memcpy(hi, plain.hi, static_cast<size_t>(lanes) * 4);
  }
  if (i.sdwa.on && which < 2) {
    const Sel sel = which == 0 ? i.sdwa.src0 : i.sdwa.src1;
    if (sel != Sel::dword || o.sext)
      for (int l = 0; l < lanes; ++l) lo[l] = select(lo[l], sel, o.sext);
  } else if (is_16bit(type) && which < 3) {
    const bool high = o.half ? o.half == 2 : (i.op_sel >> which & 1) && o.kind != Kind::constant;
    if (high)
      for (int l = 0; l < lanes; ++l) lo[l] >>= 16;
  } else if (is_16bit(type) && i.op[0].half == 2) {
    for (int l = 0; l < lanes; ++l) lo[l] >>= 16;   // the addend is the half that D names
  }
  if (is_16bit(type))
    for (int l = 0; l < lanes; ++l) lo[l] &= 0xffff;
  if (o.abs || o.neg) {
    uint32_t* top = two ? hi : lo;
    const uint32_t bit = sign_bit(type);
    const uint32_t keep = o.abs ? ~bit : ~0u, flip = o.neg ? bit : 0;
    for (int l = 0; l < lanes; ++l) top[l] = (top[l] & keep) ^ flip;
  }
  if ((i.row->flags & kFpFlushIn) && is_float(type) && !(denorm_mode(w.mode, type) & 1))
    flush_inputs(type, lo, hi, lanes);
  return {lo, hi};
}

uint64_t write_lanes(const Wave& w, const Insn& i) {
  uint64_t bits = w.mask_exec;
  if (i.dpp.ctrl == DppCtrl::none) return bits;
  for (int l = 0; l < static_cast<int>(w.lanes); ++l) {
    int s;
    bool zero;
    const bool written = (i.dpp.row_mask >> (l >> 4) & 1) && (i.dpp.bank_mask >> (l >> 2 & 3) & 1) &&
                         dpp_reads(w, i.dpp, l, &s, &zero);
    if (!written) bits &= ~(1ull << l);
  }
  return bits;
}

namespace {

// One f32 to f16 bits in a rounding mode (0 nearest even, 1 up, 2 down, 3 toward zero).
uint32_t f16_rounded(float x, uint32_t round, bool flush, bool saturate) {
  const uint32_t b = f32_bits(x), a = b & 0x7fffffff, sign = b >> 16 & 0x8000;
  if (a >= 0x7f800000) {
    if (a > 0x7f800000 || !saturate) return f32_to_f16(x);
    return sign | 0x7c00;   // an infinity that the operation itself produced stays one
  }
  uint32_t r;
  if (round == 0) {
    r = f32_to_f16(x) & 0x7fff;
  } else {
    // Truncate, then step away from zero where the direction asks for it and bits were lost.
    const int e = static_cast<int>(a >> 23) - 127;
    uint32_t lost;
    if (e >= 16) {
      r = 0x7bff, lost = 1;
    } else if (e >= -14) {
      r = (a - 0x38000000) >> 13, lost = a & 0x1fff;
    } else if (e >= -25) {
      const uint32_t m = (a & 0x7fffff) | 0x800000;
      const int shift = 13 + (-14 - e);
      r = m >> shift, lost = m & ((1u << shift) - 1);
    } else {
      r = 0, lost = a != 0;
    }
    if (lost && ((round == 1 && !sign) || (round == 2 && sign))) ++r;
  }
  if (r == 0x7c00 && saturate) r = 0x7bff;
  // Tiny: below the least normal number after rounding to 11 bits with an unbounded exponent.
  if (flush && r <= 0x400 && a < 0x38800000 - (round == 3 ? 0 : 0x1000)) r = 0;
  return sign | r;
}

// f64 results that are to be clamped or scaled come as two rows.
double clamp01(double x, bool dx10) {
  if (is_nan(x)) return dx10 ? 0.0 : x;
  return x <= 0 ? 0.0 : x > 1 ? 1.0 : x;
}
float clamp01(float x, bool dx10) {
  if (is_nan(x)) return dx10 ? 0.0f : x;
  return x <= 0 ? 0.0f : x > 1 ? 1.0f : x;
}

void clamp_rows(const Wave& w, Type type, uint32_t* lo, uint32_t* hi) {
  const bool dx10 = w.mode & kModeDx10Clamp;
  for (uint32_t l = 0; l < w.lanes; ++l) {
    switch (type) {
      case Type::f32: lo[l] = f32_bits(clamp01(as_f32(lo[l]), dx10)); break;
      case Type::f16: lo[l] = f32_to_f16(clamp01(f16_to_f32(lo[l]), dx10)); break;
      case Type::bf16: lo[l] = f32_to_bf16(clamp01(bf16_to_f32(lo[l]), dx10)); break;
      case Type::f64: {
        const double x = clamp01(as_f64(static_cast<uint64_t>(hi[l]) << 32 | lo[l]), dx10);
        lo[l] = static_cast<uint32_t>(f64_bits(x));
        hi[l] = static_cast<uint32_t>(f64_bits(x) >> 32);
        break;
      }
      default: break;   // an integer clamp is a row of its own
    }
  }
}

// omod acts on the rounded result, and only where IEEE is off and output denormals are flushed.
void omod_rows(const Wave& w, Type type, uint8_t omod, uint32_t* lo, uint32_t* hi) {
  if ((w.mode & kModeIeee) || (denorm_mode(w.mode, type) & 2)) return;
  const double factor = omod == 1 ? 2 : omod == 2 ? 4 : 0.5;
  const FpScope scope(w.mode, type);
  for (uint32_t l = 0; l < w.lanes; ++l) {
    if (type == Type::f32) {
      float x = as_f32(lo[l]) * static_cast<float>(factor);
      lo[l] = f32_bits(x == 0 ? 0.0f : x);
    } else if (type == Type::f16) {
      const float x = f16_to_f32(lo[l]) * static_cast<float>(factor);
      const uint32_t r = f16_rounded(x, round_mode(w.mode, type), true, w.mode & kModeFp16Ovfl);
      lo[l] = (r & 0x7fff) ? r : 0;
    } else if (type == Type::f64) {
      const double x = as_f64(static_cast<uint64_t>(hi[l]) << 32 | lo[l]) * factor;
      const uint64_t b = x == 0 ? 0 : f64_bits(x);
      lo[l] = static_cast<uint32_t>(b);
      hi[l] = static_cast<uint32_t>(b >> 32);
    }
  }
}

}  // namespace

void narrow(const Wave& w, Type type, uint32_t* row, bool by_mode) {
  const int lanes = static_cast<int>(w.lanes);
  if (type == Type::bf16) {
    for (int l = 0; l < lanes; ++l) row[l] = f32_to_bf16(as_f32(row[l]));
  } else if (!by_mode) {
    for (int l = 0; l < lanes; ++l) row[l] = f32_to_f16(as_f32(row[l]));
  } else {
    const uint32_t round = round_mode(w.mode, type);
    const bool flush = !(denorm_mode(w.mode, type) & 2), saturate = w.mode & kModeFp16Ovfl;
    for (int l = 0; l < lanes; ++l) row[l] = f16_rounded(as_f32(row[l]), round, flush, saturate);
  }
}

void merge(Wave& w, uint32_t index, const uint32_t* out, bool two) {
  const int lanes = static_cast<int>(w.lanes);
  if (w.mask_exec == w.lane_mask) {
    std::memcpy(w.row(index), out, static_cast<size_t>(lanes) * 4);
    if (two) std::memcpy(w.row(index + 1), out + 64, static_cast<size_t>(lanes) * 4);
    return;
  }
  uint32_t* d = w.row(index);
  for (int l = 0; l < lanes; ++l) d[l] = (d[l] & ~w.lane_rows[l]) | (out[l] & w.lane_rows[l]);
  if (!two) return;
  d = w.row(index + 1);
  for (int l = 0; l < lanes; ++l) d[l] = (d[l] & ~w.lane_rows[l]) | (out[64 + l] & w.lane_rows[l]);
}

void finish_slow(Wave& w, const Insn& i, Type type, uint32_t* out, uint64_t lanes) {
  const bool two = dwords_of(type) == 2;
  if (i.omod && is_float(type)) omod_rows(w, type, i.omod, out, out + 64);
  if (i.clamp && is_float(type)) clamp_rows(w, type, out, out + 64);
  uint32_t index = i.op[0].index;
  if (w.mode & kModeGprIdx && (w.s[kM0] >> 15 & 1)) index += w.s[kM0] & 0xff;
  // A destination past the allocation drops the write, as the hardware has it.
  if (index + (two ? 1u : 0u) >= w.vgprs + 1u) return;
  uint32_t* d = w.row(index);
  const bool half = is_16bit(type);
  const bool high = i.op[0].half ? i.op[0].half == 2 : half && (i.op_sel >> 3 & 1);
  // gfx11 keeps the half that a 16-bit result does not name; gfx9 zeroes it, except in the
  // three-source forms (kMergeHalf).
  const bool keep = w.gfx11 || high || (i.row->flags & kMergeHalf);
  for (uint32_t l = 0; l < w.lanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    uint32_t x = out[l];
    if (i.sdwa.on) {
      const Sel sel = i.sdwa.dst;
      if (sel != Sel::dword) {
        const int shift = sel >= Sel::word0 ? 16 * (static_cast<int>(sel) - 4)
                                            : 8 * static_cast<int>(sel);
        const int width = sel >= Sel::word0 ? 16 : 8;
        const uint32_t mask = ((1u << width) - 1) << shift;
        const uint32_t put = x << shift & mask;
        if (i.sdwa.unused == Unused::preserve) {
          x = (d[l] & ~mask) | put;
        } else if (i.sdwa.unused == Unused::sext) {
          const bool negative = x >> (width - 1) & 1;
          const uint32_t above = shift + width == 32 ? 0 : ~0u << (shift + width);
          x = put | (negative ? above : 0);
        } else {
          x = put;
        }
      }
    } else if (half && keep) {
      x = high ? (d[l] & 0xffff) | x << 16 : (d[l] & 0xffff0000) | (x & 0xffff);
    }
    d[l] = x;
    if (two) w.row(index + 1)[l] = out[64 + l];
  }
}

}  // namespace netra::NETRA_HOST_NS
