// How many workgroups of a kernel a multiprocessor holds, and launches that need them all at once.

#include <algorithm>

#include "hip_runtime_state.h"
#include "occupancy.h"

namespace netra::hip {
namespace {

constexpr uint32_t kSimds = 4;   // of a gfx950 compute unit, and of a gfx1151 workgroup processor

struct Sizes {
  const Kernel* kernel;
  const Target* target;
  std::shared_ptr<Module> module;   // keeps both
  uint32_t most = 0;                // work-items of a workgroup
  uint32_t wave = 0;                // work-items of a wave
};

hipError_t find_sizes(hipFunction_t handle, Sizes* sizes) {
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  const auto it = rt.functions.find(handle);
  if (it == rt.functions.end()) {
    return fail(hipErrorInvalidDeviceFunction, "the function belongs to no loaded module");
  }
  sizes->module = it->second->module.lock();
  sizes->kernel = it->second->kernel;
  sizes->target = rt.devices[sizes->module->device]->target;
  const uint32_t stated = sizes->kernel->meta_max_workgroup;
  sizes->most = stated != 0 ? std::min(stated, sizes->target->max_workgroup)
                            : sizes->target->max_workgroup;
  sizes->wave = sizes->kernel->descriptor.wave32 ? 32 : 64;
  return hipSuccess;
}

// 0 when one workgroup does not fit.
uint32_t blocks_per_multiprocessor(const Sizes& sizes, uint32_t block, uint64_t dynamic_lds) {
  const uint64_t lds = dynamic_lds + sizes.kernel->descriptor.lds_bytes;
  if (block > sizes.most || lds > sizes.target->lds_bytes) return 0;
  const uint32_t waves = (block + sizes.wave - 1) / sizes.wave;
  // Without LDS, which is shared by the SIMDs and so limits whole workgroups below.
  const Occupancy held = occupancy(*sizes.kernel, *sizes.target, 0, waves);
  uint32_t blocks = held.waves * kSimds / waves;
  if (lds != 0) {
    const uint32_t granule = sizes.target->lds_granule;
    const uint64_t each = (lds + granule - 1) / granule * granule;
    const uint64_t pool = sizes.target->wave_size == 64 ? sizes.target->lds_bytes
                                                        : 2 * sizes.target->lds_bytes;
    blocks = std::min<uint32_t>(blocks, static_cast<uint32_t>(pool / each));
  }
  return blocks;
}

// ROCm counts workgroup processors on gfx11, pairs of compute units.
uint32_t multiprocessors(const Target& target) {
  return target.wave_size == 64 ? target.compute_units : target.compute_units / 2;
}

hipError_t max_blocks(int* blocks, hipFunction_t function, int block, size_t dynamic_lds) {
  if (blocks == nullptr || block <= 0) {
    return fail(hipErrorInvalidValue, "the result pointer is null or the block is empty");
  }
  Sizes sizes{};
  const hipError_t code = find_sizes(function, &sizes);
  if (code != hipSuccess) return code;
  *blocks = static_cast<int>(
      blocks_per_multiprocessor(sizes, static_cast<uint32_t>(block), dynamic_lds));
  return hipSuccess;
}

// The block of whole waves with the most resident work-items; of equals the largest.
hipError_t best_block(int* grid, int* block, hipFunction_t function, size_t dynamic_lds,
                      int limit) {
  if (grid == nullptr || block == nullptr || limit < 0) {
    return fail(hipErrorInvalidValue, "a result pointer is null or the limit is negative");
  }
  Sizes sizes{};
  const hipError_t code = find_sizes(function, &sizes);
  if (code != hipSuccess) return code;
  const uint32_t most =
      limit != 0 ? std::min(sizes.most, static_cast<uint32_t>(limit)) : sizes.most;
  uint32_t best = 0, resident = 0, blocks = 0;
  for (uint32_t size = std::min(sizes.wave, most); size <= most; size += sizes.wave) {
    const uint32_t held = blocks_per_multiprocessor(sizes, size, dynamic_lds);
    if (held == 0 || held * size < resident) continue;
    best = size;
    blocks = held;
    resident = held * size;
  }
  *block = static_cast<int>(best);
  *grid = static_cast<int>(blocks * multiprocessors(*sizes.target));
  return hipSuccess;
}

}  // namespace
}  // namespace netra::hip

using namespace netra;
using namespace netra::hip;

extern "C" {

hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, hipStream_t, void**, void**);

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, hipFunction_t function,
                                                              int block, size_t dynamic_lds) {
  return api("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
             [&] { return max_blocks(blocks, function, block, dynamic_lds); });
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                       hipFunction_t function,
                                                                       int block,
                                                                       size_t dynamic_lds,
                                                                       unsigned flags) {
  return api("hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", [&] {
    if (flags > 1) return fail(hipErrorInvalidValue, "unknown flags");
    return max_blocks(blocks, function, block, dynamic_lds);
  });
}

hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block, hipFunction_t function,
                                                   size_t dynamic_lds, int limit) {
  return api("hipModuleOccupancyMaxPotentialBlockSize",
             [&] { return best_block(grid, block, function, dynamic_lds, limit); });
}

hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block,
                                                            hipFunction_t function,
                                                            size_t dynamic_lds, int limit,
                                                            unsigned flags) {
  return api("hipModuleOccupancyMaxPotentialBlockSizeWithFlags", [&] {
    if (flags > 1) return fail(hipErrorInvalidValue, "unknown flags");
    return best_block(grid, block, function, dynamic_lds, limit);
  });
}

// All workgroups must be resident at once. How they then meet is the kernel's own affair.
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned grid_x,
                                            unsigned grid_y, unsigned grid_z, unsigned block_x,
                                            unsigned block_y, unsigned block_z,
                                            unsigned dynamic_lds, hipStream_t stream,
                                            void** params) {
  return api("hipModuleLaunchCooperativeKernel", [&] {
    Sizes sizes{};
    const hipError_t code = find_sizes(function, &sizes);
    if (code != hipSuccess) return code;
    const uint64_t block = uint64_t{block_x} * block_y * block_z;
    const uint64_t grid = uint64_t{grid_x} * grid_y * grid_z;
    if (block != 0 && block <= sizes.most && grid_x != 0) {   // else the launch says what is wrong
      const uint64_t resident =
          uint64_t{blocks_per_multiprocessor(sizes, static_cast<uint32_t>(block), dynamic_lds)} *
          multiprocessors(*sizes.target);
      if (grid > resident) {
        return fail(hipErrorCooperativeLaunchTooLarge,
                    std::to_string(grid) + " workgroups, and the device holds " +
                        std::to_string(resident) + " at once");
      }
    }
    return hipModuleLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                 dynamic_lds, stream, params, nullptr);
  });
}

}  // extern "C"
