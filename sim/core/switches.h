// Behaviours on which public sources disagree, each a named switch with a stated default.
//
// NETRA_SIM_SWITCHES="d16_vmem=preserve,l2_add_f32=flush" sets them for the process; a name or a
// value that is not in the table is an error of every launch. docs/simulator.md lists the sources
// of each.
#pragma once

#include <string>

namespace netra {

struct Switches {
  // Half of the register that a 16-bit VMEM/FLAT load on gfx950 does not name: the guide has ECC
  // parts write the whole register (zero), the pseudocode keeps it (preserve).
  bool d16_vmem_preserve = false;
  // Denormals of L2 add_f32 on gfx950: LLVM relies on `preserve`, the guide's table says `flush`.
  bool l2_add_f32_flush = false;
  // LDS address of ds_append and ds_consume: the instruction's offset alone (the gfx950 guide; Mesa
  // leaves M0 unset), or M0[15:0] + offset (LLVM puts the pointer there).
  bool ds_append_m0 = false;
  // minimum3/maximum3 with a NaN under DX10_CLAMP, without the clamp bit: IEEE propagates it
  // (nan), the guide's note would make it 0 (zero).
  bool minimum3_dx10_zero = false;
  // DPP from an inactive lane without bound_ctrl: the destination keeps its value (keep), or the
  // source reads as 0 (zero).
  bool dpp_inactive_zero = false;
  // v_fma_mixlo/mixhi on gfx1151: round to f32, then to f16 (twice), or once.
  bool fma_mix_once = false;
};

const Switches& switches();
// What is wrong with the variable; empty when nothing is.
const std::string& switches_error();

}  // namespace netra
