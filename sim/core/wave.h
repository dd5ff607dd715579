// The state that instructions act on: one wave, its workgroup, and the launch around them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "insn.h"
#include "machine.h"
#include "memory.h"

namespace netra {

enum class Space : uint8_t { global, lds, scratch };

enum class State : uint8_t { running, barrier, ended, faulted };

struct LaunchState;
struct Group;

// The flat address apertures of LDS and scratch: 4 GiB from each base.
inline constexpr uint64_t kSharedBase = 0x0001000000000000ull,
                          kPrivateBase = 0x0002000000000000ull;
struct CodeObject;

// MODE register fields (both ISA guides, "Mode register").
inline constexpr uint32_t kModeDx10Clamp = 1u << 8, kModeIeee = 1u << 9, kModeFp16Ovfl = 1u << 23,
                          kModeGprIdx = 1u << 27, kModeVskip = 1u << 28;

struct Wave {
  alignas(64) uint32_t s[kScalarFile] = {};   // SGPRs by number; kNull is reset after each write
  uint32_t* v = nullptr;         // [register][lane], rows of `lanes` dwords, 64-byte aligned
  uint32_t lanes = 64;
  uint32_t vgprs = 0;            // rows allocated (AGPRs included)
  uint32_t ip = 0;               // index of the next instruction
  State state = State::running;
  bool scc = false;
  bool gfx11 = false;
  bool plain_mode = true;        // MODE changes nothing in a VALU instruction (see set_mode)
  uint32_t mode = 0;
  uint64_t lane_mask = 0;        // all lanes of the wave
  uint64_t mask_exec = 0;        // EXEC that `lane_rows` was made from
  alignas(64) uint32_t lane_rows[64] = {};    // ~0 for an active lane, 0 otherwise
  const Region* region = nullptr;             // the region hit last
  uint8_t* lds = nullptr;
  uint32_t lds_bytes = 0;
  // What an access may reach before it takes the slow path: all of it, or nothing when observed.
  uint32_t lds_limit = 0, scratch_limit = 0;
  uint8_t* scratch = nullptr;    // [lane][scratch_bytes]
  uint32_t scratch_bytes = 0;    // per lane
  uint64_t scratch_base = 0;     // the address that FLAT_SCRATCH would hold
  Group* group = nullptr;
  LaunchState* launch = nullptr;
  uint32_t index = 0;            // in its workgroup
  uint32_t hw_slot = 0;
  uint64_t executed = 0;
  uint64_t counts[kTallies] = {};   // instructions by class and promise
  std::string fault;
  int fault_error = 0;

  uint64_t exec() const {
    return lanes == 64 ? pair(kExec) : s[kExec];
  }
  void set_exec(uint64_t bits) {
    s[kExec] = static_cast<uint32_t>(bits);
    if (lanes == 64) s[kExec + 1] = static_cast<uint32_t>(bits >> 32);
  }
  uint64_t vcc() const { return lanes == 64 ? pair(kVcc) : s[kVcc]; }
  uint64_t pair(uint32_t n) const {
    return static_cast<uint64_t>(s[n + 1]) << 32 | s[n];
  }
  void set_pair(uint32_t n, uint64_t bits) {
    s[n] = static_cast<uint32_t>(bits);
    s[n + 1] = static_cast<uint32_t>(bits >> 32);
  }
  uint32_t* row(uint32_t index_) const { return v + static_cast<size_t>(index_) * lanes; }
  void set_mode(uint32_t bits) {
    mode = bits;
    // Nearest even and denormals kept everywhere, no FP16_OVFL, no register indexing.
    plain_mode = (bits & (0xff | kModeFp16Ovfl | kModeGprIdx)) == 0xf0;
  }
};

struct Group {
  uint32_t id[3] = {};
  std::vector<uint8_t> lds;
  std::vector<uint8_t> scratch;
  std::vector<uint32_t> registers;
  std::vector<Wave> waves;
  uint32_t live = 0;             // waves that have not ended
  uint32_t waiting = 0;          // waves at the barrier
};

// Stops the wave: the message gets kernel, pc, line and wave in front.
[[gnu::cold]] void fault(Wave& w, const Insn& i, int hip_error, const std::string& what);
// "kernel+0x2c": the function that a loaded address lies in.
std::string place_of(const CodeObject& object, uint64_t pc);
// A memory fault: adds the lane, the address and the nearest region.
[[gnu::cold]] void fault_address(Wave& w, const Insn& i, unsigned lane, uint64_t address,
                                 uint32_t bytes, const char* what);

// The host memory of `bytes` bytes at a device address; null (and a fault) outside every region,
// or for a write to a region that kernels may not write.
uint8_t* global_bytes_slow(Wave& w, const Insn& i, unsigned lane, uint64_t address, uint32_t bytes,
                           bool write);
inline uint8_t* global_bytes(Wave& w, const Insn& i, unsigned lane, uint64_t address,
                             uint32_t bytes, bool write) {
  const Region* r = w.region;
  if (r && r->contains(address, bytes) && (!write || r->writable))
    return reinterpret_cast<uint8_t*>(address);
  return global_bytes_slow(w, i, lane, address, bytes, write);
}

// What hardware does in silence (check/observer.h), told to whoever watches the launch.
[[gnu::cold]] void tell_range(const Wave& w, unsigned lane, uint64_t address, uint32_t bytes);
[[gnu::cold]] void tell_wrapped(const Wave& w, unsigned lane, uint64_t offset);
[[gnu::cold]] void tell_low_bits(const Wave& w, uint64_t address);

// The same for LDS and scratch of a lane: past the limit that the wave runs with.
uint8_t* lds_bytes_slow(Wave& w, const Insn& i, unsigned lane, uint32_t address, uint32_t bytes);
uint8_t* scratch_bytes_slow(Wave& w, const Insn& i, unsigned lane, uint32_t offset, uint32_t bytes);

// A clock that moves with every instruction of the wave, for s_memtime and SHADER_CYCLES.
uint64_t cycles(const Wave& w);

// Scalar operand access, for SALU, SMEM and uniform operands of vector instructions.
uint32_t read_special(const Wave& w, Special which, int dword);
inline uint32_t read_scalar(const Wave& w, const Operand& o, int dword = 0) {
  switch (o.kind) {
    case Kind::sgpr: return o.index == kNull ? 0 : w.s[o.index + dword];
    case Kind::constant: return dword ? o.bits_hi : o.bits_lo;
    case Kind::special: return read_special(w, static_cast<Special>(o.index), dword);
    default: return 0;
  }
}
inline uint64_t read_scalar64(const Wave& w, const Operand& o) {
  return static_cast<uint64_t>(read_scalar(w, o, 1)) << 32 | read_scalar(w, o, 0);
}
inline void write_scalar(Wave& w, const Operand& o, uint32_t bits, int dword = 0) {
  if (o.index != kNull) w.s[o.index + dword] = bits;
}
inline void write_scalar64(Wave& w, const Operand& o, uint64_t bits) {
  write_scalar(w, o, static_cast<uint32_t>(bits), 0);
  write_scalar(w, o, static_cast<uint32_t>(bits >> 32), 1);
}
// A lane mask in one SGPR (wave32) or two (wave64).
inline uint64_t read_mask(const Wave& w, const Operand& o) {
  return w.lanes == 64 ? read_scalar64(w, o) : read_scalar(w, o, 0);
}
inline void write_mask(Wave& w, const Operand& o, uint64_t bits) {
  if (w.lanes == 64) write_scalar64(w, o, bits);
  else write_scalar(w, o, static_cast<uint32_t>(bits));
}

}  // namespace netra
