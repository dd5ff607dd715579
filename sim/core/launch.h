// A launch in flight: what its waves share, and how they start, wait and end.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

#include "program.h"
#include "wave.h"

namespace netra {

struct Watch;

struct LaunchState {
  const Target* target = nullptr;
  const CodeObject* object = nullptr;
  const Kernel* kernel = nullptr;
  const Program* program = nullptr;
  std::shared_ptr<const RegionTable> regions;
  Launch launch;
  RunOptions options;
  Watch* watch = nullptr;      // observers; null in a launch that nobody watches
  uint64_t private_base = 0;
  std::atomic<uint64_t> executed{0};
  std::atomic<bool> stop{false};
  std::chrono::steady_clock::time_point deadline;
  std::mutex fault_mutex;
  std::string fault;
  int fault_error = 0;
};

void end_wave(Wave& w);
void reach_barrier(Wave& w);

}  // namespace netra
