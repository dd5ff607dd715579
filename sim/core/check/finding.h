// What a check found: two instructions, a rule, and what would have made it right.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "../insn.h"

namespace netra {

struct LaunchState;
struct Wave;

enum class Severity : uint8_t { error, warning };
// How sure a rule is: both AMD's guide and LLVM have it, one of them, hardware told, or inferred.
enum class Certainty : uint8_t { isa_and_compiler, isa_only, compiler_only, measured, inferred };

struct Party {
  std::string place;   // "kernel+0x2c"
  std::string line;    // "asm/gfx950/k.s:31", or ""
  std::string text;    // the instruction
};

struct Finding {
  std::string kind;    // "wait", "wait_states", "init", "sync", ...
  std::string rule;    // "M1", "V11", "C.4 RAW", ...
  Severity severity = Severity::error;
  Certainty certainty = Certainty::inferred;
  std::string kernel;
  std::string text;    // one sentence
  std::string mend;    // what would have made it right
  Party at, other;     // the instruction that is wrong; the one that it clashes with (place "")
  uint32_t wave = 0;
  uint32_t group[3] = {};
  int lane = -1;
  std::string reg;     // "v7 (vAcc+3)"
  bool has_address = false;
  uint64_t address = 0;
  uint64_t count = 1;  // how often these two instructions did it

  std::string json() const;
  // The same rule and instructions, of another launch perhaps.
  bool same_as(const Finding& other_finding) const;
};

// The findings of a launch, one for each kind, rule and pair of instructions.
class Findings {
 public:
  explicit Findings(const LaunchState& launch) : launch_(launch) {}
  // The finding of this key, for the caller to fill; null when it is known already (and counted).
  Finding* add(const Wave& w, const Insn& at, const Insn* other, const char* kind, const char* rule,
               Severity severity, Certainty certainty);
  std::vector<Finding> take();

 private:
  const LaunchState& launch_;
  std::map<std::tuple<std::string, std::string, const Insn*, const Insn*>, size_t> index_;
  std::vector<Finding> all_;
};

Party party_of(const LaunchState& launch, const Insn& i);
// "vAcc+3": the name of the register map (an absolute symbol such as vAcc) that lies closest below
// register `number` of the file `prefix` ('v', 'a' or 's'); "" when none does. `past` is added.
std::string map_name(const LaunchState& launch, char prefix, uint32_t number, uint32_t past = 0);
// "v7 (vAcc+3)", "a3", "s12 (sWg)", "vcc_lo"; VGPR numbers are rows of the file, AGPRs last.
std::string vgpr_name(const LaunchState& launch, uint32_t row);
std::string sgpr_name(const LaunchState& launch, uint32_t number);

}  // namespace netra
