// The rows of wait_states.cc, by the numbers of docs/sanitizer.md. Figures: `error` is what every
// source asks for, `warn` the largest figure of any; by passes 2, 4, 8, 16 of the producer where
// they depend on it.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <string_view>

#include "facts.h"
#include "finding.h"

namespace netra {

// How the two instructions must be related. VGPRs, unless the name says otherwise; matrix operands
// are A, B, index and scales (ab) or C (the addend).
enum class Relation : uint8_t {
  any,            // none
  raw, waw, touch,                   // consumer reads, writes, either, what the producer wrote
  raw_ab, raw_c, c_same, c_overlap,  // ... reads it as a matrix operand
  war_c, war_index, war_data,        // consumer writes the producer's C, index or store data
  raw_source,                        // ... as the value of v_readlane or v_readfirstlane
  sgpr, sgpr_value, sgpr_mask, sgpr_select, sgpr_exec, vccz,   // scalar registers
  hwreg,                             // the same hardware register
};

// What lies between the two counts how: wait states; VALU instructions; those that are no v_nop.
enum class Count : uint8_t { states, valu, real_valu };

struct Who {
  uint32_t any = 0, none = 0;        // kinds
  bool (*more)(const Facts&, std::string_view name) = nullptr;
};

struct Figures {
  uint8_t by_passes[4] = {};
  constexpr Figures(int n) : by_passes{u(n), u(n), u(n), u(n)} {}   // NOLINT: a number is a figure
  constexpr Figures(int a, int b, int c, int d) : by_passes{u(a), u(b), u(c), u(d)} {}
  uint8_t at(uint8_t passes) const {
    return by_passes[passes == 16 ? 3 : passes == 8 ? 2 : passes == 4 ? 1 : 0];
  }
  uint8_t most() const {
    uint8_t m = 0;
    for (const uint8_t x : by_passes) m = x > m ? x : m;
    return m;
  }
 private:
  static constexpr uint8_t u(int n) { return static_cast<uint8_t>(n); }
};

struct Hazard {
  const char* id;
  Arch arch;
  Who producer, consumer;
  Relation relation;
  Figures error, warn;
  Certainty certainty;
  bool (*pair)(const Facts& producer, const Facts& consumer) = nullptr;
  Count count = Count::states;
};

constexpr Certainty kSure = Certainty::isa_and_compiler, kIsa = Certainty::isa_only,
                    kLlvm = Certainty::compiler_only;

inline bool same_passes(const Facts& p, const Facts& c) { return p.passes == c.passes; }
inline bool other_passes(const Facts& p, const Facts& c) { return p.passes != c.passes; }
inline bool same_name(const Facts& p, const Facts& c) { return mnemonic_of(*p.insn) == mnemonic_of(*c.insn); }
inline bool other_name(const Facts& p, const Facts& c) { return !same_name(p, c); }

inline bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  for (const std::string_view n : names)
    if (name == n) return true;
  return false;
}
inline bool begins(std::string_view s, std::string_view with) { return s.substr(0, with.size()) == with; }
inline bool ends(std::string_view s, std::string_view with) {
  return s.size() >= with.size() && s.substr(s.size() - with.size()) == with;
}
inline bool contains(std::string_view s, std::string_view part) { return s.find(part) != s.npos; }

inline bool writes_scalar(const Facts& f, uint16_t first, uint16_t last) {
  for (int k = 0; k < f.writes; ++k)
    if (f.written[k].file == File::scalar && f.written[k].index <= last &&
        f.written[k].index + f.written[k].count > first)
      return true;
  return false;
}

inline bool dgemm16(const Facts& f, std::string_view) { return f.passes == 16; }
inline bool dgemm4(const Facts& f, std::string_view) { return f.passes == 4; }
// What a store moves in three or four dwords, and compare-and-swap of 64 bits.
inline bool wide_store(const Facts& f, std::string_view n) {
  if (!f.is(kIsVmem)) return false;
  if (f.is(kIsStore)) return ends(n, "x3") || ends(n, "x4") || contains(n, "format_xyz");
  return f.is(kIsAtomic) && ends(n, "cmpswap_x2");
}
inline bool scalar_offset(const Facts& f) {
  return f.insn->cls == Class::mubuf && f.insn->operands && f.insn->op[f.insn->operands - 1].kind == Kind::sgpr;
}
inline bool wide_store_fixed(const Facts& f, std::string_view n) { return wide_store(f, n) && !scalar_offset(f); }
inline bool wide_store_offset(const Facts& f, std::string_view n) { return wide_store(f, n) && scalar_offset(f); }
inline bool fma_f64(const Facts&, std::string_view n) { return one_of(n, {"v_fma_f64", "v_fmac_f64"}); }
inline bool div_fmas(const Facts&, std::string_view n) { return begins(n, "v_div_fmas"); }
inline bool not_div_fmas(const Facts& f, std::string_view n) { return !div_fmas(f, n); }
inline bool setreg(const Facts&, std::string_view n) { return begins(n, "s_setreg"); }
inline bool getset(const Facts&, std::string_view n) { return begins(n, "s_setreg") || begins(n, "s_getreg"); }
inline bool getreg_mode(const Facts& f, std::string_view n) {
  return begins(n, "s_getreg") && contains(f.insn->text, "HW_REG_MODE");
}
inline bool setvskip(const Facts&, std::string_view n) { return n == "s_setvskip"; }
// MODE as a whole, or a field that reaches bit 28.
inline bool setreg_vskip(const Facts& f, std::string_view n) {
  if (!begins(n, "s_setreg")) return false;
  const std::string_view t = f.insn->text;
  const size_t at = t.find("HW_REG_MODE");
  if (at == t.npos) return false;
  unsigned offset = 0, size = 32;
  std::sscanf(t.data() + at, "HW_REG_MODE, %u, %u", &offset, &size);
  return offset <= 28 && offset + size > 28;
}
inline bool setreg_trapsts(const Facts& f, std::string_view n) {
  return begins(n, "s_setreg") && contains(f.insn->text, "HW_REG_TRAPSTS");
}
inline bool rfe(const Facts&, std::string_view n) { return begins(n, "s_rfe"); }
inline bool vector_op(const Facts& f, std::string_view) {
  return f.is(kIsValu | kIsVmem | kIsDs | kIsMfma);
}
inline bool writes_m0(const Facts& f, std::string_view) { return writes_scalar(f, kM0, kM0); }
inline bool needs_m0(const Facts& f, std::string_view n) {
  return f.is(kIsLdsDma) || contains(n, "addtid") || n == "s_sendmsg" || begins(n, "s_movrel");
}
inline bool writes_exec_or_vcc(const Facts& f, std::string_view) {
  return writes_scalar(f, kExec, kExec + 1) || writes_scalar(f, kVcc, kVcc + 1);
}
inline bool fp4_sr(const Facts& f, std::string_view n) {
  return begins(n, "v_cvt_scalef32_sr_pk_fp4") ||
         (begins(n, "v_cvt_scalef32_pk_fp4") && f.insn->op_sel & 12);
}
inline bool cvt_8bit(std::string_view n) {
  return begins(n, "v_cvt_") && (contains(n, "fp8_f32") || contains(n, "bf8_f32"));
}
inline bool cvt_low(const Facts& f, std::string_view n) { return cvt_8bit(n) && !f.is(kPartialWrite); }
inline bool cvt_high(const Facts& f, std::string_view n) { return cvt_8bit(n) && f.is(kPartialWrite); }
inline bool loads(const Facts& f, std::string_view) {
  return f.is(kIsVmem | kIsDs) && f.writes;
}

constexpr uint32_t kMemory = kIsVmem | kIsDs;
constexpr Figures kXdlUse = {5, 8, 12, 20}, kXdlC = {4, 6, 10, 18}, kXdlOtherC = {3, 6, 10, 18},
                  kSgemmUse = {4, 6, 10, 18}, kSgemmC = {2, 4, 8, 16}, kWar = {1, 3, 7, 15},
                  kSameC = {2, 0, 0, 0};

inline constexpr Hazard kHazards[] = {
    // Results of matrix instructions (gfx950).
    {"M1", kGfx950, {kIsXdl}, {kIsValu}, Relation::touch, kXdlUse, kXdlUse, kSure},
    {"M2", kGfx950, {kIsXdl}, {kMemory}, Relation::raw, kXdlUse, kXdlUse, kSure},
    {"M3", kGfx950, {kIsXdl}, {kMemory}, Relation::waw, kXdlUse, kXdlUse, kLlvm},
    {"M4", kGfx950, {kIsXdl}, {kIsMfma}, Relation::raw_ab, kXdlUse, kXdlUse, kSure},
    {"M5", kGfx950, {kIsXdl}, {kIsXdl}, Relation::c_same, kSameC, kSameC, kSure, same_passes},
    {"M5", kGfx950, {kIsXdl}, {kIsXdl}, Relation::c_same, kSameC, kXdlC, kIsa, other_passes},
    {"M6", kGfx950, {kIsXdl}, {kIsXdl}, Relation::c_overlap, kXdlC, kXdlC, kSure},
    {"M7", kGfx950, {kIsXdl}, {kIsSgemm | kIsDgemm}, Relation::c_overlap, kXdlOtherC, kXdlOtherC, kSure},
    {"M7", kGfx950, {kIsXdl}, {kIsSgemm | kIsDgemm}, Relation::c_same, kSameC, kXdlOtherC, kIsa},
    {"M8", kGfx950, {kIsSgemm}, {kIsValu | kMemory}, Relation::touch, kSgemmUse, kSgemmUse, kSure},
    {"M8", kGfx950, {kIsSgemm}, {kIsMfma}, Relation::raw_ab, kSgemmUse, kSgemmUse, kSure},
    {"M9", kGfx950, {kIsSgemm}, {kIsSgemm}, Relation::c_same, kSameC, kSameC, kSure, same_passes},
    {"M9", kGfx950, {kIsSgemm}, {kIsSgemm}, Relation::c_same, kSameC, kSgemmC, kIsa, other_passes},
    {"M10", kGfx950, {kIsSgemm}, {kIsSgemm | kIsDgemm}, Relation::c_overlap, kSgemmC, kSgemmC, kSure},
    {"M12", kGfx950, {kIsDgemm, 0, dgemm16}, {kIsValu}, Relation::raw, 19, 19, kSure},
    {"M13", kGfx950, {kIsDgemm, 0, dgemm16}, {kIsValu | kMemory}, Relation::waw, 11, 19, kSure},
    {"M14", kGfx950, {kIsDgemm, 0, dgemm16}, {kMemory}, Relation::raw, 18, 18, kSure},
    {"M15", kGfx950, {kIsDgemm, 0, dgemm16}, {kIsMfma}, Relation::raw_ab, 19, 19, kSure},
    {"M16", kGfx950, {kIsDgemm, 0, dgemm16}, {kIsSgemm | kIsDgemm}, Relation::c_overlap, 17, 17, kSure},
    {"M18", kGfx950, {kIsDgemm, 0, dgemm4}, {kIsSgemm | kIsDgemm}, Relation::raw_c, 4, 4, kSure},
    {"M18", kGfx950, {kIsDgemm, 0, dgemm4}, {kIsMfma}, Relation::raw_ab, 6, 6, kSure},
    {"M18", kGfx950, {kIsDgemm, 0, dgemm4}, {kIsValu}, Relation::touch, 6, 6, kSure},
    {"M18", kGfx950, {kIsDgemm, 0, dgemm4}, {kMemory}, Relation::raw, 9, 9, kSure},
    {"M18", kGfx950, {kIsDgemm, 0, dgemm4}, {kMemory}, Relation::waw, 6, 6, kSure},
    {"M19", kGfx950, {kIsXdl, kIsSmfmac}, {kIsValu | kMemory}, Relation::war_c, kWar, kWar, kSure},
    {"M19", kGfx950, {kIsSmfmac}, {kIsValu | kMemory}, Relation::war_index, 0, kWar, kIsa},
    {"M20", kGfx950, {kIsDgemm}, {kIsValu, 0, fma_f64}, Relation::any, 2, 2, kLlvm},
    {"M21", kGfx950, {kIsValu, kIsDot}, {kIsMfma}, Relation::raw_ab, 2, 2, kSure},
    {"M21", kGfx950, {kIsValu, kIsDot}, {kIsMfma}, Relation::raw_c, 2, 2, kSure},
    {"M22", kGfx950, {kIsCmpx}, {kIsMfma}, Relation::any, 4, 4, kSure},
    {"M23", kGfx950, {kIsDot}, {kIsDot}, Relation::raw_ab, 3, 3, kSure, same_name},
    {"M23", kGfx950, {kIsDot}, {kIsValu}, Relation::touch, 3, 3, kSure, other_name},
    {"M23", kGfx950, {kIsDot}, {kMemory}, Relation::raw, 3, 3, kSure},
    {"M23", kGfx950, {kIsDot}, {kMemory}, Relation::waw, 3, 3, kLlvm},
    {"M24", kGfx950, {kIsDot}, {kIsMfma}, Relation::raw_ab, 0, 3, kIsa},
    {"M24", kGfx950, {kIsDot}, {kIsMfma}, Relation::raw_c, 0, 3, kIsa},
    // Vector ALU, scalar registers, EXEC (gfx950).
    {"V1", kGfx950, {kIsValu}, {kIsVmem}, Relation::sgpr, 5, 5, kSure},
    {"V2", kGfx950, {kIsValu}, {kIsValu}, Relation::sgpr_value, 2, 2, kSure},
    {"V3", kGfx950, {kIsValu}, {kIsValu, 0, not_div_fmas}, Relation::sgpr_mask, 0, 2, kLlvm},
    {"V4", kGfx950, {kIsValu}, {kIsLaneRead | kIsLaneWrite}, Relation::sgpr_select, 4, 4, kSure},
    {"V5", kGfx950, {kIsValu}, {kIsValu, 0, div_fmas}, Relation::sgpr, 4, 4, kSure},
    {"V6", kGfx950, {kIsValu}, {kIsLaneRead}, Relation::raw_source, 1, 1, kSure},
    {"V7", kGfx950, {kIsCmpx}, {kIsLaneRead | kIsLaneWrite}, Relation::any, 4, 4, kSure},
    {"V8", kGfx950, {kIsCmpx}, {kIsValu}, Relation::sgpr_exec, 2, 2, kSure},
    {"V9", kGfx950, {kIsCmpx}, {kIsDpp}, Relation::any, 5, 5, kSure},
    {"V10", kGfx950, {kIsValu}, {kIsDpp}, Relation::touch, 2, 2, kSure},
    {"V10", kGfx950, {kMemory}, {kIsDpp}, Relation::touch, 0, 2, kLlvm},
    {"V11", kGfx950, {kIsTrans}, {kIsValu, kIsTrans}, Relation::raw, 1, 1, kSure},
    {"V12", kGfx950, {kPartialWrite}, {kIsValu | kIsMfma}, Relation::touch, 1, 1, kSure},
    {"V13", kGfx950, {kIsValu, 0, fp4_sr}, {kIsValu | kIsMfma}, Relation::touch, 1, 1, kLlvm},
    {"V14", kGfx950, {kIsValu, 0, cvt_low}, {kIsValu, 0, cvt_high}, Relation::waw, 0, 1, kIsa},
    {"V15", kGfx950, {kIsValu}, {kIsPermSwap}, Relation::raw, 2, 2, kSure},
    {"V16", kGfx950, {kIsCmpx}, {kIsPermSwap}, Relation::any, 4, 4, kSure},
    {"V17", kGfx950, {kIsValu, 0, writes_exec_or_vcc}, {kIsValu}, Relation::vccz, 0, 5, kIsa},
    {"V20", kGfx950, {kIsSalu, 0, setreg}, {kIsSalu, 0, getset}, Relation::hwreg, 2, 2, kSure},
    {"V21", kGfx950, {kIsSalu, 0, setvskip}, {kIsSalu, 0, getreg_mode}, Relation::any, 2, 2, kIsa},
    {"V21", kGfx950, {kIsSalu, 0, setreg_vskip}, {0, 0, vector_op}, Relation::any, 0, 2, kIsa},
    {"V22", kGfx950, {kIsSalu, 0, setreg_trapsts}, {0, 0, rfe}, Relation::any, 1, 1, kIsa},
    {"V23", kGfx950, {kIsSalu, 0, writes_m0}, {0, 0, needs_m0}, Relation::any, 1, 1, kSure},
    {"V24", kGfx950, {kIsVmem, 0, wide_store_fixed}, {kIsValu | kIsMfma}, Relation::war_data, 2, 2, kSure},
    {"V25", kGfx950, {kIsVmem, 0, wide_store}, {0, 0, loads}, Relation::war_data, 0, 1, kIsa},
    {"V26", kGfx950, {kIsVmem, 0, wide_store_offset}, {kIsValu | kIsMfma}, Relation::war_data, 0, 1, Certainty::measured},
    // gfx1151: only a VALU instruction between the two helps.
    {"R1", kGfx1151, {kIsWmma}, {kIsWmma}, Relation::raw_ab, 1, 1, kSure, nullptr, Count::valu},
    {"R2", kGfx1151, {kIsCmpx}, {kIsPermlane}, Relation::any, 1, 1, kLlvm, nullptr, Count::real_valu},
};
inline constexpr size_t kHazardRows = sizeof kHazards / sizeof *kHazards;
static_assert(kHazardRows <= 64, "Facts has a bit for each row");

}  // namespace netra
