// A launch: its limits, its kernarg segment with the hidden arguments, and the run itself.

#include <algorithm>
#include <cstring>

#include "hip_runtime_state.h"
#include "wave.h"

namespace netra::hip {
namespace {

constexpr uint8_t kPoison = 0xa5;   // kernarg bytes that no argument covers: garbage on hardware
constexpr size_t kMostFindings = 1000;

bool is_hidden(const KernelArg& arg) { return arg.value_kind.compare(0, 7, "hidden_") == 0; }

// hipModuleLaunchKernel's limits, with the codes that ROCm returns for them.
hipError_t check_shape(const KernelOp& op, const Kernel& kernel, const Target& target,
                       uint64_t dynamic_lds) {
  auto triple = [](const uint32_t v[3]) {
    return std::to_string(v[0]) + " x " + std::to_string(v[1]) + " x " + std::to_string(v[2]);
  };
  const uint32_t* grid = op.grid;
  const uint32_t* block = op.block;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) {
    return fail(hipErrorInvalidValue, kernel.name + ": the grid " + triple(grid) + " is empty");
  }
  if (block[0] == 0 || block[1] == 0 || block[2] == 0) {
    return fail(hipErrorInvalidConfiguration,
                kernel.name + ": the block " + triple(block) + " is empty");
  }
  if (grid[0] > INT32_MAX || grid[1] > 65536 || grid[2] > 65536 ||
      uint64_t{grid[0]} * block[0] > UINT32_MAX || uint64_t{grid[1]} * block[1] > UINT32_MAX ||
      uint64_t{grid[2]} * block[2] > UINT32_MAX) {
    return fail(hipErrorInvalidConfiguration,
                kernel.name + ": the grid " + triple(grid) + " of blocks " + triple(block) +
                    " is larger than the hardware allows");
  }
  // The product can pass 2^64 only when one factor is far over the limit already.
  const uint32_t most = kernel.meta_max_workgroup != 0
                            ? std::min(kernel.meta_max_workgroup, target.max_workgroup)
                            : target.max_workgroup;
  if (block[0] > most || block[1] > most || block[2] > most ||
      uint64_t{block[0]} * block[1] * block[2] > most) {
    return fail(hipErrorLaunchFailure, kernel.name + ": the block " + triple(block) +
                                           " has more work-items than the kernel's maximum of " +
                                           std::to_string(most));
  }
  if (dynamic_lds > target.lds_bytes ||
      dynamic_lds + kernel.descriptor.lds_bytes > target.lds_bytes) {
    return fail(hipErrorInvalidValue,
                kernel.name + ": " + std::to_string(kernel.descriptor.lds_bytes) +
                    " bytes of static and " + std::to_string(dynamic_lds) +
                    " bytes of dynamic LDS are more than the " + std::to_string(target.lds_bytes) +
                    " of a workgroup");
  }
  return hipSuccess;
}

// The values of code object 4's and 5's hidden arguments. Buffers and queues that only a compiler
// runtime serves (printf, hostcall, device heap, device enqueue) do not exist here: they are null,
// so a kernel that uses one faults with a name instead of computing something else.
uint64_t hidden_value(const std::string& kind, const KernelOp& op) {
  auto axis = [&](const char* prefix) {
    const size_t length = std::strlen(prefix);
    const bool match = kind.compare(0, length, prefix) == 0 && kind.size() == length + 1;
    return match ? kind[length] - 'x' : -1;
  };
  int i;
  if ((i = axis("hidden_block_count_")) >= 0) return op.grid[i];
  if ((i = axis("hidden_group_size_")) >= 0) return op.block[i];
  if (kind == "hidden_grid_dims") return 3;   // HIP always dispatches three dimensions
  if (kind == "hidden_dynamic_lds_size") return op.dynamic_lds;
  if (kind == "hidden_private_base") return kPrivateBase >> 32;
  if (kind == "hidden_shared_base") return kSharedBase >> 32;
  return 0;   // hidden_queue_ptr (run_launch sets it), remainders (grids are whole blocks), global offsets, and what is null
}

// Fills the segment from one of HIP's two argument forms.
hipError_t lay_out(const Kernel& kernel, void** params, void** extra, KernelOp* op) {
  const auto explicit_count = std::count_if(kernel.args.begin(), kernel.args.end(),
                                            [](const KernelArg& a) { return !is_hidden(a); });
  if (params != nullptr && extra != nullptr) {
    return fail(hipErrorInvalidValue, kernel.name + ": kernelParams and extra are both given");
  }
  if (params == nullptr && extra == nullptr && explicit_count != 0) {
    return fail(hipErrorInvalidValue, kernel.name + ": the kernel takes " +
                                          std::to_string(explicit_count) +
                                          " arguments, and none are given");
  }
  const uint8_t* buffer = nullptr;
  size_t buffer_size = 0;
  if (extra != nullptr) {
    auto tag = [&](int i) { return reinterpret_cast<uintptr_t>(extra[i]); };
    if (tag(0) != HIP_LAUNCH_PARAM_BUFFER_POINTER || tag(2) != HIP_LAUNCH_PARAM_BUFFER_SIZE ||
        tag(4) != HIP_LAUNCH_PARAM_END || extra[3] == nullptr) {
      return fail(hipErrorInvalidValue,
                  kernel.name + ": extra is not {1, buffer, 2, &size, 3}");
    }
    buffer = static_cast<const uint8_t*>(extra[1]);
    buffer_size = *static_cast<const size_t*>(extra[3]);
    if (buffer == nullptr && explicit_count != 0) {
      return fail(hipErrorInvalidValue, kernel.name + ": the argument buffer is null");
    }
  }
  op->by_extra = extra != nullptr;
  op->kernarg.assign(kernel.meta_kernarg_bytes, kPoison);
  size_t position = 0;
  for (const KernelArg& arg : kernel.args) {   // the loader has checked that each fits
    uint8_t* place = op->kernarg.data() + arg.offset;
    if (is_hidden(arg)) {
      const uint64_t value = hidden_value(arg.value_kind, *op);
      std::memset(place, 0, arg.size);
      std::memcpy(place, &value, std::min<size_t>(arg.size, sizeof value));
      continue;
    }
    const std::string label = arg.name.empty() ? "argument " + std::to_string(position) : arg.name;
    if (extra != nullptr) {
      // ROCm reads past a short buffer on an eager launch and copies only `size` bytes in a
      // graph. Both are the caller's bug, so it is refused in both.
      if (uint64_t{arg.offset} + arg.size > buffer_size) {
        return fail(hipErrorInvalidValue,
                    kernel.name + ": " + label + " ends at byte " +
                        std::to_string(uint64_t{arg.offset} + arg.size) +
                        " and the argument buffer has " + std::to_string(buffer_size));
      }
      std::memcpy(place, buffer + arg.offset, arg.size);
    } else {
      if (params[position] == nullptr) {
        return fail(hipErrorInvalidValue, kernel.name + ": the pointer to " + label + " is null");
      }
      std::memcpy(place, params[position], arg.size);
    }
    ++position;
  }
  return hipSuccess;
}

void set_fault(Device& device, int code, const std::string& text) {
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  device.fault = code;
  device.fault_reported = false;
  rt.last_fault = text;
}

hipError_t launch(const char* name, hipFunction_t function, const uint32_t grid[3],
                  const uint32_t block[3], uint64_t dynamic_lds, hipStream_t handle, void** params,
                  void** extra) {
  Device* device = nullptr;
  hipError_t code = need_device(&device);
  std::shared_ptr<Stream> stream;
  if (code == hipSuccess) code = find_stream(handle, &stream);
  KernelOp op;
  if (code == hipSuccess) {
    code = prepare_kernel(function, grid, block, dynamic_lds, params, extra, &op);
  }
  if (code != hipSuccess) return code;
  const auto module = op.function->module.lock();
  if (module == nullptr || module->device != stream->device) {
    return fail(hipErrorInvalidHandle, std::string(name) + ": " + op.function->name +
                                           " was loaded for another device than the stream's");
  }
  return submit(stream, std::move(op));
}

}  // namespace

hipError_t prepare_kernel(hipFunction_t handle, const uint32_t grid[3], const uint32_t block[3],
                          uint64_t dynamic_lds, void** params, void** extra, KernelOp* op) {
  Runtime& rt = Runtime::get();
  std::shared_ptr<Module> module;
  {
    std::lock_guard lock(rt.mutex);
    const auto it = rt.functions.find(handle);
    if (it == rt.functions.end()) {
      return fail(hipErrorInvalidHandle, "the function belongs to no loaded module");
    }
    op->function = it->second;
    module = op->function->module.lock();
  }
  std::copy(grid, grid + 3, op->grid);
  std::copy(block, block + 3, op->block);
  const Kernel& kernel = *op->function->kernel;
  const hipError_t code =
      check_shape(*op, kernel, *rt.devices[module->device]->target, dynamic_lds);
  if (code != hipSuccess) return code;
  op->dynamic_lds = static_cast<uint32_t>(dynamic_lds);
  return lay_out(kernel, params, extra, op);
}

void run_kernel(Device& device, const KernelOp& op) {
  Runtime& rt = Runtime::get();
  const auto module = op.function->module.lock();
  if (module == nullptr) {
    set_fault(device, hipErrorLaunchFailure,
              "a graph launches " + op.function->name + ", whose module was unloaded");
    return;
  }
  Launch launch;
  launch.object = module->object.get();
  launch.kernel = op.function->kernel;
  std::copy(op.grid, op.grid + 3, launch.grid);
  std::copy(op.block, op.block + 3, launch.block);
  launch.dynamic_lds = op.dynamic_lds;
  if (!op.kernarg.empty()) {
    // One segment a function is enough: a device runs one operation at a time.
    Function& function = *op.function;
    if (function.kernarg == 0) {
      function.kernarg = rt.memory.allocate(op.kernarg.size(), RegionKind::kernarg, device.index,
                                            "kernarg segment of " + function.name);
      rt.memory.set_writable(function.kernarg, false);
    }
    if (function.kernarg == 0) {
      set_fault(device, hipErrorLaunchFailure, "the host has no memory for a kernarg segment");
      return;
    }
    launch.kernarg = function.kernarg;
    std::memcpy(reinterpret_cast<void*>(launch.kernarg), op.kernarg.data(), op.kernarg.size());
  }
  RunOptions options;
  {
    std::lock_guard lock(rt.mutex);
    options = rt.options;
  }
  LaunchResult result = run_launch(*device.target, rt.memory, launch, options);
  if (result.hip_error != 0) set_fault(device, result.hip_error, result.fault);
  std::lock_guard lock(rt.mutex);
  rt.last_counters = std::move(result.counters);
  rt.last_trace = std::move(result.trace);
  for (Finding& found : result.findings) {
    const auto known = std::find_if(rt.findings.begin(), rt.findings.end(),
                                    [&](const Finding& f) { return f.same_as(found); });
    if (known != rt.findings.end()) known->count += found.count;
    else if (rt.findings.size() < kMostFindings) rt.findings.push_back(std::move(found));
  }
}

}  // namespace netra::hip

using namespace netra::hip;

extern "C" {

// The grid is in workgroups. Returns once the kernel has run; what it did wrong is reported by the
// next synchronising call, as on a GPU.
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned dynamic_lds, hipStream_t stream,
                                 void** params, void** extra) {
  return api("hipModuleLaunchKernel", [&] {
    const uint32_t grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    return launch("hipModuleLaunchKernel", function, grid, block, dynamic_lds, stream, params,
                  extra);
  });
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);

// The size is in work-items, unlike above, and must be whole workgroups here.
hipError_t hipExtModuleLaunchKernel(hipFunction_t function, uint32_t size_x, uint32_t size_y,
                                    uint32_t size_z, uint32_t block_x, uint32_t block_y,
                                    uint32_t block_z, size_t dynamic_lds, hipStream_t stream,
                                    void** params, void** extra, hipEvent_t start, hipEvent_t stop,
                                    uint32_t /*flags*/) {
  return api("hipExtModuleLaunchKernel", [&] {
    const uint32_t size[3] = {size_x, size_y, size_z}, block[3] = {block_x, block_y, block_z};
    uint32_t grid[3];
    for (int i = 0; i < 3; ++i) {
      if (block[i] == 0) return fail(hipErrorInvalidConfiguration, "the block is empty");
      if (size[i] % block[i] != 0) {
        return fail(hipErrorInvalidConfiguration,
                    "a global size of " + std::to_string(size[i]) + " is not whole blocks of " +
                        std::to_string(block[i]) + "; the simulator has no partial workgroups");
      }
      grid[i] = size[i] / block[i];
    }
    hipError_t code = start != nullptr ? hipEventRecord(start, stream) : hipSuccess;
    if (code == hipSuccess) {
      code = launch("hipExtModuleLaunchKernel", function, grid, block, dynamic_lds, stream, params,
                    extra);
    }
    if (code == hipSuccess && stop != nullptr) code = hipEventRecord(stop, stream);
    return code;
  });
}

}  // extern "C"
