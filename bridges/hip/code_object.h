// Reads what the bridge must know of an AMDGPU code object before HIP sees it: target, kernels,
// descriptors, argument maps. Every offset is checked: the file may be anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "netra_bridge.h"

namespace netra::bridge {

struct Argument {
  std::string name;
  std::string kind;  // "global_buffer", "by_value", "hidden_block_count_x", ...
  uint32_t offset = 0;
  uint32_t size = 0;
};

struct KernelImage {
  std::string name;  // symbol without ".kd"
  uint32_t kernarg_bytes = 0;
  uint32_t lds_bytes = 0;
  uint32_t scratch_bytes = 0;
  uint32_t max_threads = 0;
  uint32_t wave_size = 0;
  std::vector<Argument> arguments;  // rising offset
};

struct ObjectImage {
  std::string arch;      // "gfx950"
  std::string features;  // ":sramecc+:xnack-", only those that the object insists on
  int version = 0;       // code object version, 4 to 6
  std::vector<KernelImage> kernels;
};

// `path` is for messages. Returns NETRA_OK, or a status with the thread's error set.
netra_status read_object(const std::vector<uint8_t>& file, const char* path, ObjectImage* object);

// Whether an object for `arch` + `features` runs on a device that calls itself `device`
// ("gfx950:sramecc+:xnack-"): the processor exactly, and every feature that the object names.
bool runs_on(std::string_view arch, std::string_view features, std::string_view device);

}  // namespace netra::bridge
