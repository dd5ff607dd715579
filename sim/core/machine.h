// The device as a machine: a launch goes in, findings, counters and a fault come out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check/finding.h"
#include "code_object.h"
#include "memory.h"

namespace netra {

// What the hardware of one target is; one row per target in machine.cc.
struct Target {
  const char* arch;           // "gfx950"
  const char* full_name;      // "gfx950:sramecc+:xnack-"
  uint32_t wave_size;         // native
  uint32_t compute_units;
  uint32_t lds_bytes;         // most per workgroup
  uint32_t lds_granule;
  uint32_t max_workgroup;     // work-items
  uint32_t vgpr_granule64, vgpr_granule32;
  uint32_t vgpr_file;         // registers per SIMD lane (wave32 for gfx1151)
  uint32_t max_waves_per_simd;
  uint64_t memory_bytes;      // reported by hipMemGetInfo
};
const Target* find_target(const std::string& arch);   // null when unknown

class Program;  // decoded instructions of a code object (program.h)

struct Launch {
  const CodeObject* object = nullptr;
  const Kernel* kernel = nullptr;
  uint32_t grid[3] = {1, 1, 1};    // workgroups
  uint32_t block[3] = {1, 1, 1};   // work-items
  uint32_t dynamic_lds = 0;
  uint64_t kernarg = 0;            // address of the filled kernarg segment, in a region
};

struct RunOptions {
  bool seeded = false;             // one host thread, workgroups and waves in the seeded order
  uint64_t seed = 0;
  bool checked = false;            // attach the checks
  bool counting = false;           // count memory, LDS conflicts, matrix passes, barriers
  uint64_t trace_limit = 0;        // write down this many instructions; 0 = none
  unsigned threads = 0;            // host threads for an unseeded, unwatched launch; 0 = all cores
  uint64_t wave_budget = 0;        // instructions per wave; 0 = default
  uint64_t launch_budget = 0;      // instructions per launch; 0 = default
  double seconds = 0;              // wall time per launch; 0 = default
};

struct LaunchResult {
  int hip_error = 0;               // 0, 700 (bad address), 719 (anything else a kernel did)
  std::string fault;               // empty when hip_error is 0
  std::vector<Finding> findings;
  std::string trace;               // a line per instruction, for a trace_limit
  std::map<std::string, uint64_t> counters;   // "instructions", "instructions.vop2", "waves", ...
};

// Decodes on first use and keeps the result with the object. Throws nothing.
LaunchResult run_launch(const Target& target, const Memory& memory, const Launch& launch,
                        const RunOptions& options);

// Registers that the code of a kernel names (highest + 1), from the decoded text.
struct UsedRegisters { uint32_t vgpr = 0, agpr = 0, sgpr = 0; };
// false (and `error`) when the disassembler is missing or the code cannot be decoded.
bool used_registers(const CodeObject& object, const Kernel& kernel, UsedRegisters* used,
                    std::string* error);

// Drops what run_launch kept for the object; call before the object dies.
void forget_program(const CodeObject* object);

}  // namespace netra
