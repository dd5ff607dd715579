// Allocations, copies, fills and questions about pointers.

#include <algorithm>
#include <cstring>

#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

uint64_t address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

// Checks one side of a copy. `device`: the side must be memory that HIP gave out.
hipError_t check_range(const char* what, const void* pointer, uint64_t bytes, bool device) {
  if (pointer == nullptr) return fail(hipErrorInvalidValue, std::string(what) + " is null");
  Runtime& rt = Runtime::get();
  const auto table = rt.memory.table();
  const Region* region = Memory::find(*table, address(pointer));
  const std::string where = std::string(what) + " " + hex(address(pointer));
  if (region == nullptr) {
    if (rt.memory.in_arena(address(pointer))) {
      return fail(hipErrorInvalidValue, where + " is no live allocation: it is " +
                                            Memory::describe(*table, address(pointer)));
    }
    if (!device) return hipSuccess;   // ordinary host memory
    return fail(hipErrorInvalidValue, where + " is a host pointer, and a device pointer is due");
  }
  if (!region->contains(address(pointer), bytes)) {
    return fail(hipErrorInvalidValue,
                std::to_string(bytes) + " bytes from " + where + " run past the end of " +
                    region->name);
  }
  return hipSuccess;
}

// The allocation itself; capture rules are the callers'.
hipError_t allocate_now(Device& device, void** out, size_t size, RegionKind kind,
                        const char* label) {
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  const bool counted = kind == RegionKind::device;
  if (counted && size > device.target->memory_bytes - device.used) {
    return fail(hipErrorOutOfMemory, std::to_string(size) + " bytes asked for, " +
                                         std::to_string(device.target->memory_bytes -
                                                        device.used) + " are free");
  }
  const uint64_t base = rt.memory.allocate(size, kind, device.index, label);
  if (base == 0) return fail(hipErrorOutOfMemory, "the host refused the memory");
  if (counted) device.used += size;
  if (counted && rt.options.checked) rt.memory.track(base);
  *out = reinterpret_cast<void*>(base);
  return hipSuccess;
}

hipError_t allocate(void** out, size_t size, RegionKind kind, const char* label) {
  Device* device = nullptr;
  if (out == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
  *out = nullptr;
  hipError_t code = need_device(&device);
  if (code == hipSuccess) code = forbid_during_strict_capture(label);
  if (code != hipSuccess || size == 0) return code;   // HIP gives null for nothing, and no error
  return allocate_now(*device, out, size, kind, label);
}

// The region that begins at a pointer, or why it cannot be freed as one of this kind.
hipError_t find_allocation(const void* pointer, RegionKind kind, Region* out) {
  const auto table = Runtime::get().memory.table();
  const Region* region = Memory::find(*table, address(pointer));
  if (region == nullptr || region->base != address(pointer) || region->kind != kind ||
      region->foreign) {
    return fail(hipErrorInvalidValue,
                hex(address(pointer)) + " is not the start of a live " +
                    (kind == RegionKind::device ? "hipMalloc" : "hipHostMalloc") +
                    " allocation: it is " + Memory::describe(*table, address(pointer)));
  }
  *out = *region;
  return hipSuccess;
}

// Frees after everything that runs on the device, as HIP does.
hipError_t release_now(void* pointer, RegionKind kind) {
  Region region;
  const hipError_t code = find_allocation(pointer, kind, &region);
  if (code != hipSuccess) return code;
  Runtime& rt = Runtime::get();
  Device& owner = *rt.devices[region.device];
  std::lock_guard work(owner.work);
  std::lock_guard lock(rt.mutex);
  if (!rt.memory.release(address(pointer))) {
    return fail(hipErrorInvalidValue, "another thread has freed this allocation");
  }
  if (kind == RegionKind::device) owner.used -= region.size;
  return hipSuccess;
}

hipError_t release(void* pointer, RegionKind kind, const char* label) {
  Device* device = nullptr;
  hipError_t code = need_device(&device);
  if (code == hipSuccess) code = forbid_during_strict_capture(label);
  if (code != hipSuccess || pointer == nullptr) return code;
  return release_now(pointer, kind);
}

// hipMallocAsync. In a capture the graph gets a node, and the memory lives with it.
hipError_t allocate_async(void** out, size_t size, hipStream_t handle) {
  if (out == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
  *out = nullptr;
  std::shared_ptr<Stream> stream;
  const hipError_t code = find_stream(handle, &stream);
  if (code != hipSuccess || size == 0) return code;
  Device& device = *Runtime::get().devices[stream->device];
  void* base = nullptr;
  hipError_t made = allocate_now(device, &base, size, RegionKind::device, "hipMallocAsync");
  if (made != hipSuccess) return made;
  auto memory = std::make_shared<Allocation>();
  memory->base = base;
  Region region;
  find_allocation(base, RegionKind::device, &region);
  memory->name = region.name;
  made = submit(stream, AllocOp{memory});
  if (made == hipSuccess) *out = base;
  if (made == hipSuccess && stream->capture == nullptr) memory->base = nullptr;   // the caller's
  return made;
}

// hipFreeAsync. In a capture: of memory that the same capture allocated, or of any other.
hipError_t release_async(void* pointer, hipStream_t handle) {
  std::shared_ptr<Stream> stream;
  hipError_t code = find_stream(handle, &stream);
  if (code != hipSuccess || pointer == nullptr) return code;
  FreeOp op{nullptr, pointer};
  Region region;
  code = find_allocation(pointer, RegionKind::device, &region);
  if (code != hipSuccess) return code;
  {
    std::lock_guard lock(Runtime::get().mutex);
    if (stream->capture != nullptr) {
      for (const auto& node : stream->capture->graph->nodes) {
        const auto* made = std::get_if<AllocOp>(&node->operation);
        if (made != nullptr && made->memory->base == pointer) op.memory = made->memory;
        const auto* freed = std::get_if<FreeOp>(&node->operation);
        if (freed != nullptr && freed->pointer == pointer) {
          return fail(hipErrorInvalidValue, "the capture frees " + region.name + " already");
        }
      }
    }
  }
  return submit(stream, op);
}

hipError_t copy(const char* name, void* dst, const void* src, size_t bytes, hipMemcpyKind kind,
                hipStream_t handle, bool synchronous) {
  Device* device = nullptr;
  hipError_t code = need_device(&device);
  if (code == hipSuccess && synchronous) code = forbid_during_any_capture(name);
  if (code != hipSuccess) return code;
  std::shared_ptr<Stream> stream;
  code = find_stream(handle, &stream);
  if (code != hipSuccess) return code;
  const CopyOp op{dst, src, bytes, kind};
  code = check_copy(op);
  if (code != hipSuccess) return code;
  if (bytes != 0) code = submit(stream, op);
  return code == hipSuccess && synchronous ? synchronize(*device) : code;
}

hipError_t fill(const char* name, void* dst, uint32_t value, uint32_t element, size_t count,
                hipStream_t handle, bool synchronous) {
  Device* device = nullptr;
  hipError_t code = need_device(&device);
  if (code == hipSuccess && synchronous) code = forbid_during_any_capture(name);
  if (code != hipSuccess) return code;
  std::shared_ptr<Stream> stream;
  code = find_stream(handle, &stream);
  if (code != hipSuccess) return code;
  const FillOp op{dst, value, element, count, 1, 0};
  code = check_fill(op);
  if (code != hipSuccess) return code;
  if (count != 0) code = submit(stream, op);
  return code == hipSuccess && synchronous ? synchronize(*device) : code;
}

// A copy of the region that holds the pointer; size 0 when there is none.
Region region_of(const void* pointer) {
  const auto table = Runtime::get().memory.table();
  const Region* region = Memory::find(*table, address(pointer));
  return region != nullptr ? *region : Region{};
}

hipMemoryType memory_type(const Region& region) {
  if (region.size == 0) return hipMemoryTypeUnregistered;
  return region.kind == RegionKind::host ? hipMemoryTypeHost : hipMemoryTypeDevice;
}

}  // namespace

hipError_t check_copy(const CopyOp& op) {
  bool dst_device = false, src_device = false;
  switch (op.kind) {
    case hipMemcpyHostToHost: case hipMemcpyDefault: break;
    case hipMemcpyHostToDevice: dst_device = true; break;
    case hipMemcpyDeviceToHost: src_device = true; break;
    case hipMemcpyDeviceToDevice: case hipMemcpyDeviceToDeviceNoCU:
      dst_device = src_device = true;
      break;
    default:
      return fail(hipErrorInvalidMemcpyDirection,
                  "copy kind " + std::to_string(op.kind) + " does not exist");
  }
  if (op.bytes == 0) return hipSuccess;
  const hipError_t code = check_range("the destination", op.dst, op.bytes, dst_device);
  return code != hipSuccess ? code : check_range("the source", op.src, op.bytes, src_device);
}

hipError_t check_fill(const FillOp& op) {
  if (op.count == 0) return hipSuccess;
  if (op.count > UINT64_MAX / op.element) {
    return fail(hipErrorInvalidValue, "the fill is longer than any memory");
  }
  if (address(op.dst) % op.element != 0) {
    return fail(hipErrorInvalidValue, "the destination " + hex(address(op.dst)) +
                                          " is not aligned to elements of " +
                                          std::to_string(op.element) + " bytes");
  }
  const uint64_t row = op.count * op.element;
  if (op.rows == 1) return check_range("the destination", op.dst, row, true);
  if (op.pitch < row || op.pitch % op.element != 0) {
    return fail(hipErrorInvalidValue,
                "a pitch of " + std::to_string(op.pitch) + " bytes does not fit rows of " +
                    std::to_string(row) + " and elements of " + std::to_string(op.element));
  }
  if (op.rows - 1 > (UINT64_MAX - row) / op.pitch) {
    return fail(hipErrorInvalidValue, "the fill is longer than any memory");
  }
  return check_range("the destination", op.dst, (op.rows - 1) * op.pitch + row, true);
}

hipError_t free_now(void* pointer) { return release_now(pointer, RegionKind::device); }

// Its name is unique, so memory that was freed, and given out again since, is left alone.
Allocation::~Allocation() {
  Runtime& rt = Runtime::get();
  Region region;
  if (base == nullptr || find_allocation(base, RegionKind::device, &region) != hipSuccess) return;
  std::lock_guard lock(rt.mutex);
  if (region.name != name || !rt.memory.release(address(base))) return;
  rt.devices[region.device]->used -= region.size;
}

// The region of an address if it is known what is defined there.
const Region* tracked(const RegionTable& table, const void* pointer) {
  const Region* region = Memory::find(table, address(pointer));
  return region && region->defined ? region : nullptr;
}

void run_copy(const CopyOp& op) {
  std::memmove(op.dst, op.src, op.bytes);
  const auto table = Runtime::get().memory.table();
  const Region* to = tracked(*table, op.dst);
  if (!to) return;
  const uint64_t offset = address(op.dst) - to->base;
  if (const Region* from = tracked(*table, op.src)) to->defined->copy(offset, *from->defined, address(op.src) - from->base, op.bytes);
  else to->defined->set(offset, op.bytes, true);
}

void run_fill(const FillOp& op) {
  const auto table = Runtime::get().memory.table();
  const Region* to = tracked(*table, op.dst);
  for (uint64_t row = 0; row < op.rows; ++row) {
    auto* start = static_cast<uint8_t*>(op.dst) + row * op.pitch;
    if (to != nullptr) to->defined->set(address(start) - to->base, op.count * op.element, true);
    if (op.element == 1) {
      std::memset(start, static_cast<int>(op.value & 0xff), op.count);
    } else if (op.element == 2) {
      std::fill_n(reinterpret_cast<uint16_t*>(start), op.count, static_cast<uint16_t>(op.value));
    } else {
      std::fill_n(reinterpret_cast<uint32_t*>(start), op.count, op.value);
    }
  }
}

}  // namespace netra::hip

using namespace netra;
using namespace netra::hip;

extern "C" {

hipError_t hipMalloc(void** pointer, size_t size) {
  return api("hipMalloc",
             [&] { return allocate(pointer, size, RegionKind::device, "hipMalloc"); });
}

hipError_t hipFree(void* pointer) {
  return api("hipFree", [&] { return release(pointer, RegionKind::device, "hipFree"); });
}

// The flags ask for caching behaviour that the simulator does not model; any is accepted.
hipError_t hipHostMalloc(void** pointer, size_t size, unsigned /*flags*/) {
  return api("hipHostMalloc",
             [&] { return allocate(pointer, size, RegionKind::host, "hipHostMalloc"); });
}

hipError_t hipHostFree(void* pointer) {
  return api("hipHostFree", [&] { return release(pointer, RegionKind::host, "hipHostFree"); });
}

hipError_t hipMallocAsync(void** pointer, size_t size, hipStream_t stream) {
  return api("hipMallocAsync", [&] { return allocate_async(pointer, size, stream); });
}

hipError_t hipFreeAsync(void* pointer, hipStream_t stream) {
  return api("hipFreeAsync", [&] { return release_async(pointer, stream); });
}

// The program's own memory becomes memory that kernels can reach, at the same address. The flags ask
// for caching behaviour that the simulator does not model.
hipError_t hipHostRegister(void* host, size_t size, unsigned flags) {
  return api("hipHostRegister", [&] {
    Device* device = nullptr;
    hipError_t code = need_device(&device);
    if (code == hipSuccess) code = forbid_during_strict_capture("hipHostRegister");
    if (code != hipSuccess) return code;
    if (host == nullptr || size == 0) {
      return fail(hipErrorInvalidValue, "there is no memory to register");
    }
    if (flags > 0xf) return fail(hipErrorInvalidValue, "unknown flags");
    Runtime& rt = Runtime::get();
    if (rt.memory.in_arena(address(host)) ||
        !rt.memory.adopt(address(host), size, RegionKind::host, device->index,
                         "hipHostRegister")) {
      return fail(hipErrorHostMemoryAlreadyRegistered,
                  "part of it is known to HIP already: it is " +
                      Memory::describe(*rt.memory.table(), address(host)));
    }
    return hipSuccess;
  });
}

hipError_t hipHostUnregister(void* host) {
  return api("hipHostUnregister", [&] {
    Device* device = nullptr;
    hipError_t code = need_device(&device);
    if (code == hipSuccess) code = forbid_during_strict_capture("hipHostUnregister");
    if (code != hipSuccess) return code;
    Runtime& rt = Runtime::get();
    const Region region = region_of(host);
    if (!region.foreign || region.base != address(host)) {
      return fail(hipErrorHostMemoryNotRegistered,
                  hex(address(host)) + " is not the start of registered memory");
    }
    std::lock_guard work(rt.devices[region.device]->work);
    rt.memory.release(region.base);
    return hipSuccess;
  });
}

hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned /*flags*/) {
  return api("hipHostGetDevicePointer", [&] {
    if (device == nullptr) return hipErrorInvalidValue;
    if (region_of(host).kind != RegionKind::host) {
      return fail(hipErrorInvalidValue,
                  "the pointer is neither from hipHostMalloc nor in registered memory");
    }
    *device = host;
    return hipSuccess;
  });
}

hipError_t hipMemcpy(void* dst, const void* src, size_t bytes, hipMemcpyKind kind) {
  return api("hipMemcpy",
             [&] { return copy("hipMemcpy", dst, src, bytes, kind, nullptr, true); });
}

hipError_t hipMemcpyAsync(void* dst, const void* src, size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream) {
  return api("hipMemcpyAsync",
             [&] { return copy("hipMemcpyAsync", dst, src, bytes, kind, stream, false); });
}

// The driver-style forms: the direction is in the name.
#define COPY_PAIR(NAME, DST, SRC, KIND)                                                         \
  hipError_t NAME(DST dst, SRC src, size_t bytes) {                                             \
    return api(#NAME, [&] { return copy(#NAME, dst, src, bytes, KIND, nullptr, true); });       \
  }                                                                                             \
  hipError_t NAME##Async(DST dst, SRC src, size_t bytes, hipStream_t stream) {                  \
    return api(#NAME "Async",                                                                   \
               [&] { return copy(#NAME "Async", dst, src, bytes, KIND, stream, false); });      \
  }
COPY_PAIR(hipMemcpyHtoD, hipDeviceptr_t, const void*, hipMemcpyHostToDevice)
COPY_PAIR(hipMemcpyDtoH, void*, hipDeviceptr_t, hipMemcpyDeviceToHost)
COPY_PAIR(hipMemcpyDtoD, hipDeviceptr_t, hipDeviceptr_t, hipMemcpyDeviceToDevice)
#undef COPY_PAIR

#define FILL_PAIR(NAME, VALUE, BYTES)                                                           \
  hipError_t NAME(void* dst, VALUE value, size_t count) {                                       \
    return api(#NAME, [&] {                                                                     \
      return fill(#NAME, dst, static_cast<uint32_t>(value), BYTES, count, nullptr, true);       \
    });                                                                                         \
  }                                                                                             \
  hipError_t NAME##Async(void* dst, VALUE value, size_t count, hipStream_t stream) {            \
    return api(#NAME "Async", [&] {                                                             \
      return fill(#NAME "Async", dst, static_cast<uint32_t>(value), BYTES, count, stream,       \
                  false);                                                                       \
    });                                                                                         \
  }
FILL_PAIR(hipMemset, int, 1)
FILL_PAIR(hipMemsetD8, unsigned char, 1)
FILL_PAIR(hipMemsetD16, unsigned short, 2)
FILL_PAIR(hipMemsetD32, int, 4)
#undef FILL_PAIR

// Of bytes of a tracked allocation: nothing has written them. What they hold stays.
int netraSimUndefine(void* pointer, size_t bytes) {
  return api("netraSimUndefine", [&] {
    const hipError_t code = check_range("the pointer", pointer, bytes, true);
    if (code != hipSuccess) return code;
    const auto table = Runtime::get().memory.table();
    if (const Region* region = tracked(*table, pointer)) region->defined->set(address(pointer) - region->base, bytes, false);
    return hipSuccess;
  });
}

hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total) {
  return api("hipMemGetInfo", [&] {
    if (free_bytes == nullptr || total == nullptr) return hipErrorInvalidValue;
    Device* device = nullptr;
    const hipError_t code = need_device(&device);
    if (code != hipSuccess) return code;
    std::lock_guard lock(Runtime::get().mutex);
    *total = device->target->memory_bytes;
    *free_bytes = device->target->memory_bytes - device->used;
    return hipSuccess;
  });
}

// An address that HIP never gave out is described as unregistered, which is no error since HIP 6.
hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  return api("hipPointerGetAttributes", [&] {
    if (attributes == nullptr || pointer == nullptr) return hipErrorInvalidValue;
    const Region region = region_of(pointer);
    *attributes = hipPointerAttribute_t{};
    attributes->type = memory_type(region);
    attributes->device = region.size != 0 ? region.device : -2;   // hipInvalidDeviceId
    if (region.size == 0) return hipSuccess;
    attributes->devicePointer = const_cast<void*>(pointer);
    if (region.kind == RegionKind::host) attributes->hostPointer = const_cast<void*>(pointer);
    return hipSuccess;
  });
}

hipError_t hipPointerGetAttribute(void* data, hipPointer_attribute attribute,
                                  hipDeviceptr_t pointer) {
  return api("hipPointerGetAttribute", [&] {
    if (data == nullptr) return hipErrorInvalidValue;
    const Region region = region_of(pointer);
    if (region.size == 0) {
      return fail(hipErrorInvalidValue, hex(address(pointer)) + " is in no allocation");
    }
    const bool host = region.kind == RegionKind::host;
    switch (attribute) {
      case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<uint32_t*>(data) = static_cast<uint32_t>(memory_type(region));
        return hipSuccess;
      case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *static_cast<void**>(data) = pointer;
        return hipSuccess;
      case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
        *static_cast<void**>(data) = host ? pointer : nullptr;
        return host ? hipSuccess : fail(hipErrorInvalidValue, "device memory has no host pointer");
      case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(data) = region.device;
        return hipSuccess;
      case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *static_cast<void**>(data) = reinterpret_cast<void*>(region.base);
        return hipSuccess;
      case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
        *static_cast<size_t*>(data) = region.size;
        return hipSuccess;
      case HIP_POINTER_ATTRIBUTE_MAPPED:
        *static_cast<uint32_t*>(data) = 1;
        return hipSuccess;
    }
    return fail(hipErrorNotSupported, "pointer attribute " + std::to_string(attribute) +
                                          " is not known to the simulator");
  });
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, size_t* size, hipDeviceptr_t pointer) {
  return api("hipMemGetAddressRange", [&] {
    const Region region = region_of(pointer);
    if (region.size == 0) {
      return fail(hipErrorNotFound, hex(address(pointer)) + " is in no allocation");
    }
    if (base != nullptr) *base = reinterpret_cast<void*>(region.base);
    if (size != nullptr) *size = region.size;
    return hipSuccess;
  });
}

}  // extern "C"
