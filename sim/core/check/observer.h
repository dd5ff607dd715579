// The seam between a running launch and whoever watches it: checks, traces, counters.
//
// A launch with a Watch runs the observed form of the instruction loop (machine.cc) on one host
// thread. A launch without one runs code that knows nothing of observers. Memory drivers are the
// same in both: an observed wave has no cached region and LDS and scratch limits of 0, so each
// access takes the slow path of its address check, which reports here (wave.cc).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../wave.h"
#include "facts.h"
#include "finding.h"

namespace netra {

// One lane's piece of one instruction's memory traffic, in the order of execution. Dwords that a
// buffer descriptor's range check drops touch nothing and are not here.
struct MemoryAccess {
  Space space = Space::global;
  bool read = false, write = false;   // both for an atomic
  uint8_t lane = 0;
  uint32_t bytes = 0;
  uint64_t address = 0;               // global: device address; LDS, scratch: byte offset
  uint8_t* host = nullptr;
};
using Accesses = std::span<const MemoryAccess>;

// Something that an instruction does without a word, in a lane, to `bytes` bytes at `address`.
struct Silent {
  enum What : uint8_t {
    range,      // outside the range of its buffer descriptor: reads 0, stores nothing
    wrapped,    // the sum of its offsets is more than 32 bits
    low_bits,   // the low bits of its address do not count
  };
  What what;
  uint8_t lane;
  uint32_t bytes;
  uint64_t address;
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Registers, LDS and dispatch state are set up; no wave has run.
  virtual void start_group(Group&) {}
  virtual void end_group(Group&) {}
  // Around one instruction. `w.ip` points past it already. After a fault there is no `after`; the
  // state may be barrier or ended.
  virtual void before(Wave&, const Insn&, const Facts&) {}
  virtual void after(Wave&, const Insn&, const Facts&, Accesses) {}
  // Every live wave has arrived at the barrier, and all go on.
  virtual void barrier_released(Group&) {}
  // No wave of the group can go on, or its budget is spent; the launch is about to fault.
  virtual void stuck(Group&) {}
  // The launch is over: results go to where they belong.
  virtual void finish(LaunchState&) {}
};

struct Watch {
  explicit Watch(const LaunchState& launch, uint32_t lanes);
  std::vector<std::unique_ptr<Observer>> observers;
  std::vector<MemoryAccess> accesses;   // of the current instruction
  std::vector<Silent> silent;           // likewise
  FactsTable facts;
  // What observers leave behind at `finish`.
  Findings findings;
  std::map<std::string, uint64_t> counters;
  std::string trace;

  void start_group(Group& g) { for (auto& o : observers) o->start_group(g); }
  void end_group(Group& g) { for (auto& o : observers) o->end_group(g); }
  void before(Wave& w, const Insn& i, const Facts& f) {
    accesses.clear();
    silent.clear();
    for (auto& o : observers) o->before(w, i, f);
  }
  void after(Wave& w, const Insn& i, const Facts& f) {
    for (auto& o : observers) o->after(w, i, f, accesses);
  }
};

// The observers that the launch's options ask for (checks.cc).
void attach_observers(Watch& watch, LaunchState& launch);

}  // namespace netra
