// Vector instructions that move values between lanes, registers chosen at run time, or lanes and
// SGPRs, and VOPD.
#include <bit>
#include <cstring>
#include <string>

#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

uint32_t lane_value(Wave& w, const Insn& i, const Operand& o, uint32_t lane) {
  return o.kind == Kind::vgpr ? w.row(indexed(w, i, o, 0, 1).index)[lane] : read_scalar(w, o);
}

void nothing(Wave&, const Insn&) {}

// EXEC without a lane reads lane 0.
void readfirstlane(Wave& w, const Insn& i) {
  const uint64_t exec = w.exec();
  const uint32_t lane = exec ? static_cast<uint32_t>(std::countr_zero(exec)) : 0;
  write_scalar(w, i.op[0], lane_value(w, i, i.op[1], lane));
}
void readlane(Wave& w, const Insn& i) {
  write_scalar(w, i.op[0], lane_value(w, i, i.op[1], read_scalar(w, i.op[2]) & (w.lanes - 1)));
}
void writelane(Wave& w, const Insn& i) {
  const Operand d = indexed(w, i, i.op[0], kRoleDst, 1);
  if (w.state == State::faulted) return;
  w.row(d.index)[read_scalar(w, i.op[2]) & (w.lanes - 1)] = read_scalar(w, i.op[1]);
}

// v_permlane16 and v_permlanex16: within rows of 16 lanes, or from the other row of the pair. The
// 64-bit selector S2:S1 has four bits a lane. op_sel[0] is fetch-inactive, op_sel[1] bound_ctrl.
template <uint32_t kOtherRow>
void permlane16(Wave& w, const Insn& i) {
  const uint64_t sel = static_cast<uint64_t>(read_scalar(w, i.op[3])) << 32 | read_scalar(w, i.op[2]);
  const uint32_t* s = w.row(i.op[1].index);
  const uint64_t exec = w.exec();
  const bool fi = i.op_sel & 1, zero = i.op_sel & 2;
  uint32_t out[64];
  uint64_t written = exec;
  for (uint32_t l = 0; l < w.lanes; ++l) {
    const uint32_t from = ((l & ~15u) ^ kOtherRow) | (sel >> (4 * (l & 15)) & 15);
    out[l] = s[from];
    if (fi || (exec >> from & 1)) continue;
    if (zero) out[l] = 0;
    else written &= ~(1ull << l);
  }
  uint32_t* d = w.row(i.op[0].index);
  for (uint32_t l = 0; l < w.lanes; ++l)
    if (written >> l & 1) d[l] = out[l];
}
// Swaps the halves of a wave64; in wave32 there is nothing to swap, and D stays.
void permlane64(Wave& w, const Insn& i) {
  if (w.lanes == 32) return;
  uint32_t out[64];
  const uint32_t* s = w.row(i.op[1].index);
  for (uint32_t l = 0; l < 64; ++l) out[l] = s[l ^ 32];
  sync_exec(w);
  merge(w, i.op[0].index, out, false);
}

// gfx950: odd rows (of kRow lanes) of D change places with even rows of S. A lane whose partner is
// inactive keeps its value, or gets 0 with bound_ctrl, or the partner's with fi.
template <uint32_t kRow>
void permlane_swap(Wave& w, const Insn& i) {
  uint32_t* d = w.row(i.op[0].index);
  uint32_t* s = w.row(i.op[1].index);
  const uint64_t exec = w.exec();
  for (uint32_t l = 0; l < w.lanes; ++l) {
    if (l & kRow) continue;
    const uint32_t upper = l + kRow;      // of D; its partner is lane l of S
    const bool a = exec >> l & 1, b = exec >> upper & 1;
    const uint32_t from_d = d[upper], from_s = s[l];
    if (a && (b || i.dpp.fi || i.dpp.bound_ctrl)) s[l] = b || i.dpp.fi ? from_d : 0;
    if (b && (a || i.dpp.fi || i.dpp.bound_ctrl)) d[upper] = a || i.dpp.fi ? from_s : 0;
  }
}

void swap_rows(Wave& w, uint32_t x, uint32_t y, uint32_t x_bits, int x_shift, int y_shift) {
  uint32_t *a = w.row(x), *b = w.row(y);
  const uint64_t exec = w.exec();
  for (uint32_t l = 0; l < w.lanes; ++l) {
    if (!(exec >> l & 1)) continue;
    const uint32_t p = a[l] >> x_shift & x_bits, q = b[l] >> y_shift & x_bits;
    a[l] = (a[l] & ~(x_bits << x_shift)) | q << x_shift;
    b[l] = (b[l] & ~(x_bits << y_shift)) | p << y_shift;
  }
}
void swap32(Wave& w, const Insn& i) {
  const uint32_t d = indexed(w, i, i.op[0], kRoleDst, 1).index, s = indexed(w, i, i.op[1], 0, 1).index;
  if (w.state != State::faulted) swap_rows(w, d, s, ~0u, 0, 0);
}
void swap16(Wave& w, const Insn& i) {
  swap_rows(w, i.op[0].index, i.op[1].index, 0xffff, i.op[0].half == 2 ? 16 : 0,
            i.op[1].half == 2 ? 16 : 0);
}

// v_movrel: M0 is added to the number of a register. The _2 forms have a field for each.
enum Relative { kRelSource = 1, kRelDest = 2, kRelTwo = 4, kRelSwap = 8 };
template <int kHow>
void movrel(Wave& w, const Insn& i) {
  const uint32_t m0 = w.s[kM0];
  const uint32_t to_source = kHow & kRelTwo ? m0 & 0x3ff : m0;
  const uint32_t to_dest = kHow & kRelTwo ? m0 >> 16 & 0x3ff : m0;
  Operand d = i.op[0], s = i.op[1];
  const auto move = [&](Operand& o, uint32_t by) {
    if (static_cast<uint64_t>(o.index) + by < w.vgprs) {
      o.index = static_cast<uint16_t>(o.index + by);
      return true;
    }
    fault(w, i, 719, "M0 adds " + std::to_string(by) + " to v" + std::to_string(o.index) +
                         ": past the " + std::to_string(w.vgprs) + " VGPRs of the wave");
    return false;
  };
  if ((kHow & kRelSource) && s.kind == Kind::vgpr && !move(s, to_source)) return;
  if ((kHow & kRelDest) && !move(d, to_dest)) return;
  if (kHow & kRelSwap) return swap_rows(w, d.index, s.index, ~0u, 0, 0);
  sync_exec(w);
  uint32_t tmp[128], out[64];
  const Lanes x = fetch_plain(w, s, false, tmp);
  std::memcpy(out, x.lo, static_cast<size_t>(w.lanes) * 4);
  merge(w, d.index, out, false);
}

// Four sums over a window of four bytes that moves along S0, each added to a dword of S2.
template <bool kClamp>
void mqsad_u32(Wave& w, const Insn& i) {
  uint32_t tmp[2][128];
  uint32_t out[4][64];
  const Lanes a = fetch_plain(w, i.op[1], true, tmp[0]), b = fetch_plain(w, i.op[2], false, tmp[1]);
  const Operand& c = i.op[3];
  for (uint32_t l = 0; l < w.lanes; ++l) {
    const uint64_t s0 = static_cast<uint64_t>(a.hi[l]) << 32 | a.lo[l];
    for (int k = 0; k < 4; ++k) {
      const uint32_t s2 = c.kind == Kind::vgpr ? w.row(c.index + static_cast<uint32_t>(k))[l]
                          : c.kind == Kind::constant ? (k ? c.bits_hi : c.bits_lo)
                                                     : read_scalar(w, c, k);
      const uint64_t sum = static_cast<uint64_t>(sad_u8(static_cast<uint32_t>(s0 >> (8 * k)), b.lo[l], true)) + s2;
      out[k][l] = kClamp && sum > 0xffffffff ? ~0u : static_cast<uint32_t>(sum);
    }
  }
  sync_exec(w);
  for (uint32_t k = 0; k < 4; ++k) merge(w, i.op[0].index + k, out[k], false);
}

// X writes the spare row behind the allocation; Y reads before X's result is moved into place.
void dual(Wave& w, const Insn& i) {
  i.x->execute(w, *i.x);
  i.y->execute(w, *i.y);
  sync_exec(w);
  merge(w, i.op[0].index, w.row(i.x->op[0].index), false);
}

constexpr Row row(const char* name, Class cls, uint8_t archs, Execute execute,
                  std::initializer_list<Slot> slots, uint32_t mods = 0, uint32_t flags = 0) {
  Row r;
  r.name = name, r.cls = cls, r.archs = archs, r.execute = execute, r.mods = mods, r.flags = flags;
  for (const Slot& s : slots) r.slot[r.slots++] = s;
  return r;
}
constexpr Slot kOut = {Type::b32, kWrite, 0}, kIn = {Type::b32, kRead, 0},
               kInOut = {Type::b32, kReadWrite, 0}, kIn64 = {Type::b64, kRead, 0};
constexpr Slot kHalfInOut = {Type::b16, kReadWrite, 0};
constexpr Slot kFour = {Type::wide, kWrite, 4}, kFourIn = {Type::wide, kRead, 4};

constexpr Row kRows[] = {
    row("v_nop", Class::vop1, both, &nothing, {}),
    row("v_clrexcp", Class::vop1, gfx9, &nothing, {}),
    row("v_pipeflush", Class::vop1, gfx11, &nothing, {}),
    row("v_readfirstlane_b32", Class::vop1, both, &readfirstlane, {kOut, kIn}),
    row("v_readlane_b32", Class::vop3, both, &readlane, {kOut, kIn, kIn}, 0, kIgnoresExec),
    row("v_writelane_b32", Class::vop3, both, &writelane, {kInOut, kIn, kIn}, 0, kIgnoresExec),
    row("v_permlane16_b32", Class::vop3, gfx11, &permlane16<0>, {kInOut, kIn, kIn, kIn}, kModOpSel),
    row("v_permlanex16_b32", Class::vop3, gfx11, &permlane16<16>, {kInOut, kIn, kIn, kIn}, kModOpSel),
    row("v_permlane64_b32", Class::vop1, gfx11, &permlane64, {kOut, kIn}),
    row("v_permlane16_swap_b32", Class::vop1, gfx9, &permlane_swap<16>, {kInOut, kInOut}, kModBoundCtrl),
    row("v_permlane32_swap_b32", Class::vop1, gfx9, &permlane_swap<32>, {kInOut, kInOut}, kModBoundCtrl),
    row("v_swap_b32", Class::vop1, both, &swap32, {kInOut, kInOut}),
    row("v_swap_b16", Class::vop1, gfx11, &swap16, {kHalfInOut, kHalfInOut}, kModHalf),
    row("v_movreld_b32", Class::vop1, gfx11, &movrel<kRelDest>, {kOut, kIn}, 0, kReadsM0),
    row("v_movrels_b32", Class::vop1, gfx11, &movrel<kRelSource>, {kOut, kIn}, 0, kReadsM0),
    row("v_movrelsd_b32", Class::vop1, gfx11, &movrel<kRelSource | kRelDest>, {kOut, kIn}, 0, kReadsM0),
    row("v_movrelsd_2_b32", Class::vop1, gfx11, &movrel<kRelSource | kRelDest | kRelTwo>, {kOut, kIn}, 0, kReadsM0),
    row("v_swaprel_b32", Class::vop1, gfx11, &movrel<kRelSource | kRelDest | kRelTwo | kRelSwap>, {kInOut, kInOut}, 0, kReadsM0),
    row("v_mqsad_u32_u8", Class::vop3, both, &mqsad_u32<false>, {kFour, kIn64, kIn, kFourIn}),
    row("v_mqsad_u32_u8", Class::vop3, both, &mqsad_u32<true>, {kFour, kIn64, kIn, kFourIn}, kModClamp, kClampRow),
    row("v_dual", Class::vopd, gfx11, &dual, {kOut}),
};

}  // namespace

RowSpan lanes_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra::NETRA_HOST_NS
