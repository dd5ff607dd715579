// What an instruction reads and writes, and which kinds of instruction it is: all that a check
// needs to know, worked out once for each instruction of a program from its bound operands.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <string_view>

#include "../insn.h"

namespace netra {

class Program;
struct Wave;

inline constexpr uint16_t kScc = kScalarFile;   // SCC, as one more scalar register

enum class File : uint8_t { vgpr, scalar };

// `count` consecutive registers; `bytes` says which bytes of each are meant.
struct Ref {
  File file = File::vgpr;
  uint8_t count = 0;
  uint16_t index = 0;
  uint8_t bytes = 15;
  uint8_t slot = 0;
};
inline constexpr uint8_t kImplicit = 0xff;    // slot of a register that is not in the text
inline constexpr uint8_t kAccumulator = 0xfe; // D of an accumulating operation, as a source

enum Kind32 : uint32_t {
  kIsValu = 1u << 0,        // VOP*, not matrix
  kIsSalu = 1u << 1,
  kIsVmem = 1u << 2,        // buffer, global, scratch, flat
  kIsFlat = 1u << 3,        // flat alone
  kIsDs = 1u << 4,
  kIsSmem = 1u << 5,
  kIsXdl = 1u << 6, kIsSgemm = 1u << 7, kIsDgemm = 1u << 8, kIsSmfmac = 1u << 9,
  kIsWmma = 1u << 10,
  kIsTrans = 1u << 11,
  kIsDot = 1u << 12,
  kIsCmpx = 1u << 13,       // VALU that writes EXEC
  kIsLaneRead = 1u << 14,   // v_readlane, v_readfirstlane
  kIsLaneWrite = 1u << 15,
  kIsDpp = 1u << 16,
  kIsPermSwap = 1u << 17,
  kIsPermlane = 1u << 18,   // v_permlane16, x16, 64 of gfx1151
  kIsNop = 1u << 19,        // v_nop
  kIsLoad = 1u << 20, kIsStore = 1u << 21, kIsAtomic = 1u << 22, kReturns = 1u << 23,
  kIsLdsDma = 1u << 24,
  kIgnoresLanes = 1u << 25, // reads and writes every lane whatever EXEC is
  kPartialWrite = 1u << 26, // writes a part of a register (SDWA, op_sel, byte selects)
  kIsBarrier = 1u << 27, kIsBranch = 1u << 28,
  kIsMfma = kIsXdl | kIsSgemm | kIsDgemm,
};

// Wait counters that an instruction raises.
enum Counter : uint8_t { kVm, kLgkm, kExp, kVs, kCounters };

struct Facts {
  const Insn* insn = nullptr;
  std::array<Ref, 14> read{};
  std::array<Ref, 4> written{};
  uint8_t reads = 0, writes = 0;
  uint8_t passes = 0;           // matrix instructions
  uint8_t address_slots = 0;    // bits: operand slots that make an address (memory)
  uint8_t wait_states = 1;      // what it counts between two others
  uint8_t counters = 0;         // bit per Counter that it raises
  uint32_t kinds = 0;
  uint64_t produces = 0, consumes = 0;   // rows of the wait-state table (wait_states.cc)
  uint8_t reach = 0;            // largest figure of the rows that it produces
  uint8_t waits = 0;            // bit per Counter that it waits on
  uint8_t wait[kCounters] = {}; // ... down to this number

  bool is(uint32_t kind) const { return kinds & kind; }
};

class FactsTable {
 public:
  FactsTable(const Program& program, Arch arch, uint32_t lanes);
  const Facts& operator[](const Insn& i);

 private:
  const Insn* first_;
  Arch arch_;
  uint32_t lanes_;
  std::vector<Facts> facts_;
};

// The mnemonic without its encoding suffix, of refused instructions too.
std::string_view mnemonic_of(const Insn& i);

// The registers as this execution has them: s_set_gpr_idx and the movrel forms move some. Returns
// `f` itself where nothing moves, else `moved`, filled.
const Facts& resolve(const Wave& w, const Facts& f, Facts* moved);

}  // namespace netra
