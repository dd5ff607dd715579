// Vector instructions that move values between lanes, or between lanes and SGPRs, and VOPD.
#include <bit>
#include <cstring>

#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

uint32_t lane_value(const Wave& w, const Operand& o, uint32_t lane) {
  return o.kind == Kind::vgpr ? w.row(o.index)[lane] : read_scalar(w, o);
}

void readfirstlane(Wave& w, const Insn& i) {
  const uint64_t exec = w.exec();
  write_scalar(w, i.op[0], lane_value(w, i.op[1], exec ? static_cast<uint32_t>(std::countr_zero(exec)) : 0));
}
void readlane(Wave& w, const Insn& i) {
  write_scalar(w, i.op[0], lane_value(w, i.op[1], read_scalar(w, i.op[2]) & (w.lanes - 1)));
}
void writelane(Wave& w, const Insn& i) {
  w.row(i.op[0].index)[read_scalar(w, i.op[2]) & (w.lanes - 1)] = read_scalar(w, i.op[1]);
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

// X writes the spare row behind the allocation; Y reads before X's result is moved into place.
void dual(Wave& w, const Insn& i) {
  i.x->execute(w, *i.x);
  i.y->execute(w, *i.y);
  merge(w, i.op[0].index, w.row(i.x->op[0].index), false);
}

constexpr Row row(const char* name, Class cls, uint8_t archs, Execute execute,
                  std::initializer_list<Slot> slots, uint32_t mods = 0, uint32_t flags = 0) {
  Row r;
  r.name = name, r.cls = cls, r.archs = archs, r.execute = execute, r.mods = mods, r.flags = flags;
  for (const Slot& s : slots) r.slot[r.slots++] = s;
  return r;
}
constexpr Slot kOut = {Type::b32, kWrite, 0}, kIn = {Type::b32, kRead, 0};

constexpr Row kRows[] = {
    row("v_readfirstlane_b32", Class::vop1, both, &readfirstlane, {kOut, kIn}),
    row("v_readlane_b32", Class::vop3, both, &readlane, {kOut, kIn, kIn}, 0, kIgnoresExec),
    row("v_writelane_b32", Class::vop3, both, &writelane, {{Type::b32, kReadWrite, 0}, kIn, kIn}, 0, kIgnoresExec),
    row("v_permlane16_b32", Class::vop3, gfx11, &permlane16<0>, {{Type::b32, kReadWrite, 0}, kIn, kIn, kIn}, kModOpSel),
    row("v_permlanex16_b32", Class::vop3, gfx11, &permlane16<16>, {{Type::b32, kReadWrite, 0}, kIn, kIn, kIn}, kModOpSel),
    row("v_dual", Class::vopd, gfx11, &dual, {kOut}),
};

}  // namespace

RowSpan lanes_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra::NETRA_HOST_NS
