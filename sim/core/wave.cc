// Faults, region look-up, special operands, and the life of a wave.
#include "wave.h"

#include <cstdio>

#include "check/observer.h"
#include "launch.h"

namespace netra {
namespace {

std::string hex(uint64_t x) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(x));
  return text;
}

}  // namespace

// Time is counted in instructions of the wave, this one included: it always moves on.
uint64_t cycles(const Wave& w) {
  uint64_t n = 0;
  for (const uint64_t c : w.counts) n += c;
  return 16 * n;
}

std::string place_of(const CodeObject& object, uint64_t pc) {
  const Symbol* best = nullptr;
  for (const Symbol& s : object.symbols)
    if (s.function && s.value + object.load_base <= pc && (!best || s.value > best->value)) best = &s;
  return best ? best->name + "+" + hex(pc - object.load_base - best->value) : "no symbol";
}

void fault(Wave& w, const Insn& i, int hip_error, const std::string& what) {
  if (w.state == State::faulted) return;
  w.state = State::faulted;
  w.fault_error = hip_error;
  const std::string& line = w.launch->program->line(i);
  w.fault = w.launch->kernel->name + ": " + what + "\n  at " + (line.empty() ? "(no line table)" : line) +
            ", pc " + hex(i.pc) + " (" + place_of(*w.launch->object, i.pc) + "): " + i.text +
            "\n  wave " + std::to_string(w.index) + " of workgroup (" + std::to_string(w.group->id[0]) +
            ", " + std::to_string(w.group->id[1]) + ", " + std::to_string(w.group->id[2]) + ")";
}

void fault_address(Wave& w, const Insn& i, unsigned lane, uint64_t address, uint32_t bytes,
                   const char* what) {
  std::string text = std::string(what) + " access of " + std::to_string(bytes) + " bytes at " +
                     hex(address) + " by lane " + std::to_string(lane) + ": ";
  const std::string kind = what;
  if (kind.find("LDS") != std::string::npos)
    text += "the workgroup has " + std::to_string(w.lds_bytes) + " bytes of LDS";
  else if (kind == "scratch")
    text += "a lane has " + std::to_string(w.scratch_bytes) + " bytes of scratch";
  else
    text += Memory::describe(*w.launch->regions, address);
  fault(w, i, 700, text);
}

namespace {

// Tells the observers of an access that is about to happen.
void report(Wave& w, const Insn& i, Space space, unsigned lane, uint64_t address, uint32_t bytes, uint8_t* host) {
  const uint32_t flags = i.row->flags;
  const bool dma = flags & kLoad && flags & kReadsM0 && i.cls != Class::ds;
  MemoryAccess a;
  a.space = space;
  a.write = flags & (kStore | kAtomic) || (dma && space == Space::lds);
  a.read = flags & kAtomic || !a.write;
  a.lane = static_cast<uint8_t>(lane);
  a.bytes = bytes;
  a.address = address;
  a.host = host;
  w.launch->watch->accesses.push_back(a);
}

}  // namespace

void tell_range(const Wave& w, unsigned lane, uint64_t address, uint32_t bytes) {
  if (Watch* watch = w.launch->watch) watch->silent.push_back({Silent::range, static_cast<uint8_t>(lane), bytes, address});
}
void tell_wrapped(const Wave& w, unsigned lane, uint64_t offset) {
  if (Watch* watch = w.launch->watch) watch->silent.push_back({Silent::wrapped, static_cast<uint8_t>(lane), 0, offset});
}
void tell_low_bits(const Wave& w, uint64_t address) {
  if (Watch* watch = w.launch->watch) watch->silent.push_back({Silent::low_bits, 0, 4, address});
}

uint8_t* global_bytes_slow(Wave& w, const Insn& i, unsigned lane, uint64_t address, uint32_t bytes,
                           bool write) {
  const Region* r = Memory::find(*w.launch->regions, address);
  if (!r || !r->contains(address, bytes)) {
    fault_address(w, i, lane, address, bytes, "out-of-bounds");
    return nullptr;
  }
  if (write && !r->writable) {
    fault_address(w, i, lane, address, bytes, "read-only memory: write");
    return nullptr;
  }
  uint8_t* host = reinterpret_cast<uint8_t*>(address);
  if (w.launch->watch) report(w, i, Space::global, lane, address, bytes, host);   // and no short cut
  else w.region = r;
  return host;
}

uint8_t* lds_bytes_slow(Wave& w, const Insn& i, unsigned lane, uint32_t address, uint32_t bytes) {
  if (address > w.lds_bytes || bytes > w.lds_bytes - address) {
    fault_address(w, i, lane, address, bytes, "LDS");
    return nullptr;
  }
  report(w, i, Space::lds, lane, address, bytes, w.lds + address);
  return w.lds + address;
}

uint8_t* scratch_bytes_slow(Wave& w, const Insn& i, unsigned lane, uint32_t offset, uint32_t bytes) {
  if (offset > w.scratch_bytes || bytes > w.scratch_bytes - offset) {
    fault_address(w, i, lane, offset, bytes, "scratch");
    return nullptr;
  }
  uint8_t* host = w.scratch + static_cast<size_t>(lane) * w.scratch_bytes + offset;
  report(w, i, Space::scratch, lane, offset, bytes, host);
  return host;
}

uint32_t read_special(const Wave& w, Special which, int dword) {
  const auto part = [dword](uint64_t x) { return static_cast<uint32_t>(x >> (32 * dword)); };
  switch (which) {
    case Special::vccz: return w.vcc() == 0;
    case Special::execz: return w.exec() == 0;
    case Special::scc: return w.scc;
    case Special::shared_base: return part(kSharedBase);
    case Special::shared_limit: return part(kSharedBase | 0xffffffff);
    case Special::private_base: return part(kPrivateBase);
    case Special::private_limit: return part(kPrivateBase | 0xffffffff);
    case Special::lds_direct: break;
  }
  return 0;
}

namespace {

void release_barrier(Group& g) {
  for (Wave& w : g.waves)
    if (w.state == State::barrier) w.state = State::running;
  g.waiting = 0;
  if (Watch* watch = g.waves[0].launch->watch)
    for (auto& o : watch->observers) o->barrier_released(g);
}

}  // namespace

void end_wave(Wave& w) {
  w.state = State::ended;
  Group& g = *w.group;
  if (--g.live && g.waiting == g.live) release_barrier(g);
}

void reach_barrier(Wave& w) {
  w.state = State::barrier;
  Group& g = *w.group;
  if (++g.waiting == g.live) release_barrier(g);
}

}  // namespace netra
