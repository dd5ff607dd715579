// Program flow and hints: SOPP. Waits have no value effect here (data arrives at once); they are
// what the wait check watches.
#include "hwreg.h"
#include "launch.h"
#include "rows.h"

namespace netra {
namespace {

void nothing(Wave&, const Insn&) {}

void branch(Wave& w, const Insn& i) { w.ip = static_cast<uint32_t>(i.target); }
template <bool Taken(const Wave&)>
void branch_if(Wave& w, const Insn& i) {
  if (Taken(w)) w.ip = static_cast<uint32_t>(i.target);
}
bool scc0(const Wave& w) { return !w.scc; }
bool scc1(const Wave& w) { return w.scc; }
bool vccz(const Wave& w) { return w.vcc() == 0; }
bool vccnz(const Wave& w) { return w.vcc() != 0; }
bool execz(const Wave& w) { return w.exec() == 0; }
bool execnz(const Wave& w) { return w.exec() != 0; }

void endpgm(Wave& w, const Insn&) { end_wave(w); }
void barrier(Wave& w, const Insn&) { reach_barrier(w); }

void trap(Wave& w, const Insn& i) {
  // ROCm's trap handler: 2 is llvm.trap, which aborts the dispatch; 3 is llvm.debugtrap.
  if (i.imm == 3) return;
  fault(w, i, 719, "s_trap " + std::to_string(i.imm) + " aborts the launch");
}
void code_end(Wave& w, const Insn& i) { fault(w, i, 719, "ran into the padding behind the code"); }

void setkill(Wave& w, const Insn& i) {
  if (i.imm & 1) end_wave(w);
}
void sethalt(Wave& w, const Insn& i) {
  if (i.imm & 1) fault(w, i, 719, "s_sethalt stops the wave, and there is no debugger to go on");
}
void gpr_idx_off(Wave& w, const Insn&) { w.set_mode(w.mode & ~kModeGprIdx); }
void gpr_idx_mode(Wave& w, const Insn& i) {
  w.s[kM0] = (w.s[kM0] & ~0xf000u) | gpr_idx_roles(i) << 12;
}
void round_mode(Wave& w, const Insn& i) { w.set_mode((w.mode & ~0x0fu) | (i.imm & 15)); }
void denorm_mode(Wave& w, const Insn& i) { w.set_mode((w.mode & ~0xf0u) | (i.imm & 15) << 4); }

constexpr Row sopp(const char* name, Execute execute, uint8_t archs = kBoth, uint32_t flags = 0) {
  Row r;
  r.name = name;
  r.cls = Class::sopp;
  r.archs = archs;
  r.execute = execute;
  r.flags = flags;
  return r;
}

constexpr Row kRows[] = {
    sopp("s_nop", &nothing),
    sopp("s_endpgm", &endpgm),
    sopp("s_branch", &branch, kBoth, kBranch),
    sopp("s_cbranch_scc0", &branch_if<scc0>, kBoth, kBranch | kReadsScc),
    sopp("s_cbranch_scc1", &branch_if<scc1>, kBoth, kBranch | kReadsScc),
    sopp("s_cbranch_vccz", &branch_if<vccz>, kBoth, kBranch | kImplicitVccRead),
    sopp("s_cbranch_vccnz", &branch_if<vccnz>, kBoth, kBranch | kImplicitVccRead),
    sopp("s_cbranch_execz", &branch_if<execz>, kBoth, kBranch),
    sopp("s_cbranch_execnz", &branch_if<execnz>, kBoth, kBranch),
    sopp("s_barrier", &barrier),
    sopp("s_endpgm_saved", &endpgm),
    sopp("s_endpgm_ordered_ps_done", &endpgm),
    // The debugger's conditions are never set.
    sopp("s_cbranch_cdbgsys", &nothing, kBoth, kBranch),
    sopp("s_cbranch_cdbguser", &nothing, kBoth, kBranch),
    sopp("s_cbranch_cdbgsys_or_user", &nothing, kBoth, kBranch),
    sopp("s_cbranch_cdbgsys_and_user", &nothing, kBoth, kBranch),
    sopp("s_setkill", &setkill),
    sopp("s_sethalt", &sethalt),
    sopp("s_trap", &trap),
    sopp("s_code_end", &code_end, kGfx1151),
    sopp("s_set_gpr_idx_off", &gpr_idx_off, kGfx950),
    sopp("s_set_gpr_idx_mode", &gpr_idx_mode, kGfx950),
    sopp("s_round_mode", &round_mode, kGfx1151),
    sopp("s_denorm_mode", &denorm_mode, kGfx1151),
    sopp("s_waitcnt", &nothing),
    sopp("s_waitcnt_depctr", &nothing, kGfx1151),
    sopp("s_wait_idle", &nothing, kGfx1151),
    sopp("s_wait_event", &nothing, kGfx1151),
    sopp("s_delay_alu", &nothing, kGfx1151),
    sopp("s_clause", &nothing, kGfx1151),
    sopp("s_set_inst_prefetch_distance", &nothing, kGfx1151),
    sopp("s_sleep", &nothing),
    sopp("s_wakeup", &nothing),
    sopp("s_setprio", &nothing),
    sopp("s_sendmsg", &nothing),
    sopp("s_icache_inv", &nothing),
    sopp("s_incperflevel", &nothing),
    sopp("s_decperflevel", &nothing),
    sopp("s_ttracedata", &nothing),
    sopp("s_ttracedata_imm", &nothing, kGfx1151),
};

}  // namespace

RowSpan sopp_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra
