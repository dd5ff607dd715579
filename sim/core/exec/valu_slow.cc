// The vector ALU driver for instructions with modifiers or an unusual MODE: row transformations of
// the sources before the lane loop, and of the result after it.
#include "valu.h"

#include <cstring>
#include <string>

#include "../dpp.h"
#include "../switches.h"

namespace netra::NETRA_HOST_NS {

void refresh_lane_rows(Wave& w) {
  w.mask_exec = w.exec();
  expand_bits(w.mask_exec, w.lane_rows);
}

namespace {

// Whether lane l gets a value through DPP, and from where; `zero` when it reads 0 instead.
// An inactive source follows the bound_ctrl rule (docs/simulator.md, "DPP").
bool dpp_reads(const Wave& w, const Dpp& d, int l, int* from, bool* zero) {
  const int s = dpp_source(d, l, static_cast<int>(w.lanes));
  *from = s;
  *zero = false;
  if (s >= 0 && (d.fi || (w.mask_exec >> s & 1))) return true;
  if (d.ctrl == DppCtrl::dpp8 || d.bound_ctrl || (s >= 0 && switches().dpp_inactive_zero)) {
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

uint32_t half_of(const Insn& i, const Operand& o, int which) {
  return o.half ? o.half == 2 : i.op_sel >> which & 1;
}

// A source with everything that the instruction and MODE do to it. `which` is 0 for src0 (the one
// that DPP permutes), 1 and 2 for the others, 3 for an addend that is the destination.
Lanes fetch(Wave& w, const Insn& i, const Form& form, const Operand& o, Type type, int which,
            uint32_t* tmp) {
  const int lanes = static_cast<int>(w.lanes);
  const bool two = dwords_of(type) == 2;
  const Lanes plain = fetch_plain(w, indexed(w, i, o, which, two ? 2 : 1), two, tmp);
  uint32_t* lo = tmp;
  uint32_t* hi = tmp + 64;
  if (which == 0 && i.dpp.ctrl != DppCtrl::none) {
    permute(w, i, plain, two, tmp);
  } else if (plain.lo != tmp) {
    std::memcpy(lo, plain.lo, static_cast<size_t>(lanes) * 4);
    if (two) std::memcpy(hi, plain.hi, static_cast<size_t>(lanes) * 4);
  }
  if (i.sdwa.on && which < 2) {
    const Sel sel = which == 0 ? i.sdwa.src0 : i.sdwa.src1;
    if (sel != Sel::dword || o.sext)
      for (int l = 0; l < lanes; ++l) lo[l] = select(lo[l], sel, o.sext);
  } else if (is_16bit(type)) {
    // An accumulator is the half that the destination names.
    const bool high = which < 3 ? half_of(i, o, which) : half_of(i, i.op[0], 3);
    if (high)
      for (int l = 0; l < lanes; ++l) lo[l] >>= 16;
  }
  if (is_16bit(type))
    for (int l = 0; l < lanes; ++l) lo[l] &= 0xffff;
  if (o.abs || o.neg) {
    uint32_t* top = two ? hi : lo;
    const uint32_t bit = is_16bit(type) ? 0x8000u : 0x80000000u;
    const uint32_t keep = o.abs ? ~bit : ~0u, flip = o.neg ? bit : 0;
    for (int l = 0; l < lanes; ++l) top[l] = (top[l] & keep) ^ flip;
  }
  if (flushes_inputs(w, form.flags, type)) flush_inputs(type, lo, hi, lanes);
  return {lo, hi};
}

template <class F>
F clamp01(F x, bool dx10) {
  if (is_nan(x)) return dx10 ? F{0} : x;
  return x <= 0 ? F{0} : x > 1 ? F{1} : x;
}

// omod acts on the rounded result, and only where IEEE is off and output denormals are flushed.
void omod_rows(const Wave& w, Type type, uint8_t omod, uint32_t* lo, uint32_t* hi) {
  if ((w.mode & kModeIeee) || (denorm_mode(w.mode, type) & 2)) return;
  const double factor = omod == 1 ? 2 : omod == 2 ? 4 : 0.5;
  const FpScope scope(w.mode, type);
  for (uint32_t l = 0; l < w.lanes; ++l) {
    if (type == Type::f32) {
      const float x = as_f32(lo[l]);
      const float r = x * static_cast<float>(factor);
      if (!is_nan(x)) lo[l] = f32_bits(r == 0 && !(omod == 3 && x != 0) ? 0.0f : r);
    } else if (type == Type::f16) {
      const float x = f16_to_f32(lo[l]) * static_cast<float>(factor);
      const uint32_t r = f16_rounded(x, round_mode(w.mode, type), true, w.mode & kModeFp16Ovfl);
      if (!is_nan(x)) lo[l] = (r & 0x7fff) || (omod == 3 && x != 0) ? r : 0;
    } else if (type == Type::f64) {
      const double v = as_f64(static_cast<uint64_t>(hi[l]) << 32 | lo[l]), x = v * factor;
      if (is_nan(v)) continue;
      const uint64_t b = x == 0 && !(omod == 3 && v != 0) ? 0 : f64_bits(x);
      lo[l] = static_cast<uint32_t>(b);
      hi[l] = static_cast<uint32_t>(b >> 32);
    }
  }
}

// SDWA's placement of a result: the selected part of D, and what becomes of the rest.
uint32_t place(const Sdwa& s, uint32_t old, uint32_t x) {
  if (s.dst == Sel::dword) return x;
  const bool word = s.dst >= Sel::word0;
  const int part = static_cast<int>(s.dst), width = word ? 16 : 8;
  const int shift = word ? 16 * (part - 4) : 8 * part;
  const uint32_t mask = ((1u << width) - 1) << shift, put = x << shift & mask;
  if (s.unused == Unused::preserve) return (old & ~mask) | put;
  if (s.unused == Unused::pad || !(x >> (width - 1) & 1) || shift + width == 32) return put;
  return put | ~0u << (shift + width);
}

// The write of `out` under `lanes` with SDWA and op_sel placement.
void write_result(Wave& w, const Insn& i, Type type, const uint32_t* out, uint64_t lanes) {
  const bool two = dwords_of(type) == 2, half = is_16bit(type);
  const uint32_t index = indexed(w, i, i.op[0], kRoleDst, two ? 2 : 1).index;
  if (w.state == State::faulted) return;
  uint32_t* d = w.row(index);
  const bool high = half && half_of(i, i.op[0], 3);
  const bool keep = high || keeps_half(w, i);
  for (uint32_t l = 0; l < w.lanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    uint32_t x = out[l];
    if (i.sdwa.on) x = place(i.sdwa, d[l], x);
    else if (half && keep) x = high ? (d[l] & 0xffff) | x << 16 : (d[l] & 0xffff0000) | (x & 0xffff);
    d[l] = x;
    if (two) w.row(index + 1)[l] = out[64 + l];
  }
}

// The NaN that an operation returns when its result is one: the first NaN source, quieted (as it
// is without MODE.IEEE); an invalid product comes first in an fma (checked before the addend).
template <class V>
V nan_result(V d, const V* s, int sources, bool fma, bool ieee) {
  if (!is_nan(d)) return d;
  const V invalid = -std::numeric_limits<V>::quiet_NaN();
  if (fma && ((is_inf(s[0]) && s[1] == 0) || (s[0] == 0 && is_inf(s[1])))) return invalid;
  for (int k = 0; k < sources; ++k)
    if (is_nan(s[k])) return ieee ? quiet(s[k]) : s[k];
  return invalid;
}

}  // namespace

Operand indexed(Wave& w, const Insn& i, const Operand& o, int role, uint32_t registers) {
  if (!(w.mode & kModeGprIdx) || o.kind != Kind::vgpr || !(w.s[kM0] >> (12 + role) & 1)) return o;
  Operand at = o;
  at.index = static_cast<uint16_t>(o.index + (w.s[kM0] & 0xff));
  if (at.index + registers > w.vgprs) {
    fault(w, i, 719, "s_set_gpr_idx adds " + std::to_string(w.s[kM0] & 0xff) + " to v" +
                         std::to_string(o.index) + ": past the " + std::to_string(w.vgprs) +
                         " VGPRs of the wave");
    at.index = 0;
  }
  return at;
}

void permute(const Wave& w, const Insn& i, Lanes from, bool two, uint32_t* tmp) {
  uint32_t permuted[128];
  for (int l = 0; l < static_cast<int>(w.lanes); ++l) {
    int s;
    bool zero;
    const bool reads = dpp_reads(w, i.dpp, l, &s, &zero);
    permuted[l] = !reads || zero ? 0 : from.lo[s];
    permuted[64 + l] = !reads || zero || !two ? 0 : from.hi[s];
  }
  std::memcpy(tmp, permuted, sizeof permuted);
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

bool flushes_inputs(const Wave& w, uint32_t flags, Type type) {
  return (flags & kFpFlushIn) && is_float(type) && !(denorm_mode(w.mode, type) & 1);
}
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
      default: break;   // the binder lets no other type have a clamp without a row of its own
    }
  }
}

void narrow(const Wave& w, Type type, uint32_t* row, uint32_t flags) {
  const int lanes = static_cast<int>(w.lanes);
  if (type == Type::bf16) {
    for (int l = 0; l < lanes; ++l) row[l] = f32_to_bf16(as_f32(row[l]));
  } else if (w.plain_mode || !(flags & (kFpArith | kFpNearest))) {
    for (int l = 0; l < lanes; ++l) row[l] = f32_to_f16(as_f32(row[l]));
  } else {
    const uint32_t round = flags & kFpNearest ? 0 : round_mode(w.mode, type);
    const bool flush = !(denorm_mode(w.mode, type) & 2), saturate = w.mode & kModeFp16Ovfl;
    for (int l = 0; l < lanes; ++l) row[l] = f16_rounded(as_f32(row[l]), round, flush, saturate);
  }
}

void fix_nans(const Wave& w, const Form& f, Job& job) {
  const bool ieee = w.mode & kModeIeee;
  const int sources = f.s2 == f.d ? 3 : f.s1 == f.d ? 2 : 1;
  const Lanes in[3] = {job.a, job.b, job.c};
  const Type types[3] = {f.s0, f.s1, f.s2};
  for (int l = 0; l < job.lanes; ++l) {
    if (f.d == Type::f64) {
      double s[3] = {};
      for (int k = 0; k < sources; ++k)
        if (types[k] == f.d) s[k] = F64::get(in[k].lo, in[k].hi, l);
      const double d = F64::get(job.out, job.out_hi, l);
      F64::put(job.out, job.out_hi, l, nan_result(d, s, sources, f.fma, ieee));
    } else {
      float s[3] = {};
      for (int k = 0; k < sources; ++k)
        if (types[k] == f.d) s[k] = f.d == Type::f32   ? as_f32(in[k].lo[l])
                                    : f.d == Type::f16 ? f16_to_f32(in[k].lo[l] & 0xffff)
                                                       : bf16_to_f32(in[k].lo[l] & 0xffff);
      job.out[l] = f32_bits(nan_result(as_f32(job.out[l]), s, sources, f.fma, ieee));
    }
  }
}

void run_body(const Wave& w, const Insn& i, const Form& f, Job& job) {
  if (!w.plain_mode && f.flags & (kFpArith | kFpNearest)) {
    const FpScope scope(f.flags & kFpNearest ? w.mode & ~15u : w.mode, f.d);
    f.loop(w, i, job);
  } else {
    f.loop(w, i, job);
  }
  if (job.any_nan) fix_nans(w, f, job);
  if (f.d == Type::f16 || f.d == Type::bf16) narrow(w, f.d, job.out, f.flags);
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

void merge_half(Wave& w, uint32_t index, const uint32_t* out, bool keep) {
  const int lanes = static_cast<int>(w.lanes);
  const uint32_t other = keep ? 0xffff0000 : 0;
  uint32_t* d = w.row(index);
  for (int l = 0; l < lanes; ++l)
    d[l] = (d[l] & ~w.lane_rows[l]) | (((d[l] & other) | (out[l] & 0xffff)) & w.lane_rows[l]);
}

// Inactive lanes get 0. Lanes that DPP leaves out keep their bit of a carry, and get 0 from a
// compare.
void write_carry(Wave& w, const Insn& i, const Form& f, uint64_t bits, uint64_t written) {
  const bool implicit = f.flags & kImplicitVccWrite;
  const Operand& o = i.op[f.d != Type::none];
  if (f.d != Type::none && written != w.mask_exec)
    bits |= (implicit ? w.vcc() : read_mask(w, o)) & w.mask_exec & ~written;
  if (!implicit) write_mask(w, o, bits);
  else if (w.lanes == 64) w.set_pair(kVcc, bits);
  else w.s[kVcc] = static_cast<uint32_t>(bits);
}

void valu_slow(Wave& w, const Insn& i, const Form& f) {
  sync_exec(w);
  Rows t;
  Job job;
  job.lanes = static_cast<int>(w.lanes);
  int n = (f.d != Type::none) + (f.c && !(f.flags & kImplicitVccWrite));
  if (f.s0 != Type::none) job.a = fetch(w, i, f, i.op[n++], f.s0, 0, t.src[0]);
  if (f.s1 != Type::none) job.b = fetch(w, i, f, i.op[n++], f.s1, 1, t.src[1]);
  if (f.acc) {
    Operand acc = i.op[0];
    acc.index = i.acc_row;
    acc.neg = acc.abs = false;
    job.c = fetch(w, i, f, acc, f.s2, 3, t.src[2]);
  } else if (f.s2 != Type::none) {
    job.c = fetch(w, i, f, i.op[n++], f.s2, 2, t.src[2]);
  }
  if (w.state == State::faulted) return;
  if (f.v) {
    expand_bits(f.flags & kImplicitVccRead ? w.vcc() : read_mask(w, i.op[n]), t.carry_in);
    job.carry_in = t.carry_in;
  }
  job.out = t.out;
  job.out_hi = t.out + 64;
  job.carry_out = t.carry_out;
  run_body(w, i, f, job);
  const uint64_t written = write_lanes(w, i);
  if (f.c) write_carry(w, i, f, pack_bits(t.carry_out, w.lanes) & written, written);
  if (f.d == Type::none) return;
  if (i.omod && is_float(f.d)) omod_rows(w, f.d, i.omod, t.out, t.out + 64);
  if (i.clamp && is_float(f.d)) clamp_rows(w, f.d, t.out, t.out + 64);
  write_result(w, i, f.d, t.out, written);
}

}  // namespace netra::NETRA_HOST_NS
