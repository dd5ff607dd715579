// A model of LDS banks: which lanes of an access go together, and how often a bank is asked twice.
//
// gfx950 has 64 banks of a dword, gfx1151 32 for each pair of SIMDs. Lanes of one phase that want
// different dwords of a bank come one after another; the same dword serves any number of lanes. The
// phases of gfx950's plain reads were measured by others on MI350X, the one phase of gfx1151's
// dword reads of a wave32 in CU mode follows from published notes. Of all else nothing is known;
// there the model assumes the phases that move as much at a time, and says so.
#pragma once

#include <cstdint>

#include "observer.h"

namespace netra {

struct BankCount {
  uint64_t phases = 0;
  uint64_t conflicts = 0;     // passes over the banks that a phase takes beyond its first
};

class BankModel {
 public:
  explicit BankModel(const LaunchState& launch);
  // The accesses of one DS instruction.
  BankCount count(Accesses accesses) const;
  // Whether the phases of this instruction are known rather than assumed.
  bool known(const Insn& i) const;

 private:
  unsigned phase_of(uint32_t dwords, unsigned lane) const;

  bool gfx950_;
  bool cu_wave32_;            // gfx1151: a wave32 in CU mode
  uint32_t banks_;
};

}  // namespace netra
