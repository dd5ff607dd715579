// Devices and what they say about themselves. One table feeds the two property structures and
// hipDeviceGetAttribute, so that they cannot disagree.

#include <algorithm>
#include <climits>
#include <cstring>

#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

constexpr int kHipVersion = 70100000;   // 7.1.0: major * 10^7 + minor * 10^5 + patch
constexpr int kNone = -1;

thread_local int t_device = 0;

bool is_cdna(const Target& t) { return t.wave_size == 64; }

// gfx1151 counts workgroup processors (pairs of compute units), as ROCm does there.
int64_t multiprocessors(const Target& t) {
  return is_cdna(t) ? t.compute_units : t.compute_units / 2;
}

struct Property {
  int attribute;       // hipDeviceAttribute_t, or kNone
  int r0600, r0000;    // byte offsets, or kNone
  int bytes;           // 4 or 8
  int64_t (*value)(const Target&);
};

#define VALUE(...) [](const Target& t) -> int64_t { (void)t; return __VA_ARGS__; }

constexpr Property kProperties[] = {
    // attribute, R0600, R0000, bytes, value
    {84, 288, 256, 8, VALUE(static_cast<int64_t>(t.memory_bytes))},    // totalGlobalMem
    {74, 296, 264, 8, VALUE(t.lds_bytes)},                             // sharedMemPerBlock
    {71, 304, 272, 4, VALUE(65536)},                                   // regsPerBlock
    {87, 308, 276, 4, VALUE(t.wave_size)},                             // warpSize
    {58, 312, 712, 8, VALUE(INT_MAX)},                                 // memPitch
    {56, 320, 280, 4, VALUE(t.max_workgroup)},                         // maxThreadsPerBlock
    {26, 324, 284, 4, VALUE(t.max_workgroup)},                         // maxThreadsDim[0]
    {27, 328, 288, 4, VALUE(t.max_workgroup)},
    {28, 332, 292, 4, VALUE(t.max_workgroup)},
    {29, 336, 296, 4, VALUE(INT_MAX)},                                 // maxGridSize[0]
    {30, 340, 300, 4, VALUE(65536)},
    {31, 344, 304, 4, VALUE(65536)},
    {5, 348, 308, 4, VALUE(is_cdna(t) ? 2400000 : 2900000)},           // clockRate, kHz
    {83, 352, 320, 8, VALUE(INT_MAX)},                                 // totalConstMem
    {23, 360, 328, 4, VALUE(is_cdna(t) ? 9 : 11)},                     // major
    {61, 364, 332, 4, VALUE(5)},                                       // minor
    {81, 368, 720, 8, VALUE(256)},                                     // textureAlignment
    {82, 376, 728, 8, VALUE(256)},                                     // texturePitchAlignment
    {63, 388, 336, 4, VALUE(multiprocessors(t))},                      // multiProcessorCount
    {18, 392, 736, 4, VALUE(0)},                                       // kernelExecTimeout
    {16, 396, 652, 4, VALUE(!is_cdna(t))},                             // integrated
    {3, 400, 388, 4, VALUE(1)},                                        // canMapHostMemory
    {6, 404, 348, 4, VALUE(0)},                                        // computeMode
    {8, 576, 360, 4, VALUE(1)},                                        // concurrentKernels
    {0, 580, 740, 4, VALUE(0)},                                        // ECCEnabled
    {67, 584, 368, 4, VALUE(0)},                                       // pciBusID
    {68, 588, 372, 4, VALUE(0)},                                       // pciDeviceID
    {69, 592, 364, 4, VALUE(0)},                                       // pciDomainID
    {80, 596, 744, 4, VALUE(0)},                                       // tccDriver
    {2, 600, kNone, 4, VALUE(0)},                                      // asyncEngineCount
    {85, 604, kNone, 4, VALUE(1)},                                     // unifiedAddressing
    {60, 608, 312, 4, VALUE(is_cdna(t) ? 2000000 : 1000000)},          // memoryClockRate, kHz
    {59, 612, 316, 4, VALUE(is_cdna(t) ? 8192 : 256)},                 // memoryBusWidth
    {19, 616, 340, 4, VALUE(is_cdna(t) ? 4 << 20 : 2 << 20)},          // l2CacheSize
    {57, 624, 344, 4, VALUE(2048)},                                    // maxThreadsPerMultiProcessor
    {78, 628, kNone, 4, VALUE(0)},                                     // streamPrioritiesSupported
    {76, 640, kNone, 8, VALUE(t.lds_bytes)},                           // sharedMemPerMultiprocessor
    {72, 648, kNone, 4, VALUE(65536)},                                 // regsPerMultiprocessor
    {24, 652, 772, 4, VALUE(0)},                                       // managedMemory
    {17, 656, 384, 4, VALUE(0)},                                       // isMultiGpuBoard
    {65, 672, 784, 4, VALUE(0)},                                       // pageableMemoryAccess
    {9, 676, 780, 4, VALUE(0)},                                        // concurrentManagedAccess
    {10, 688, 656, 4, VALUE(0)},                                       // cooperativeLaunch
    {11, 692, 660, 4, VALUE(0)},                                       // cooperativeMultiDevice
    {75, 696, kNone, 8, VALUE(t.lds_bytes)},                           // sharedMemPerBlockOptin
    {66, 704, 788, 4, VALUE(0)},                                       // ...UsesHostPageTables
    {13, 708, 776, 4, VALUE(0)},                                       // directManagedMemAccess
    {73, 720, kNone, 8, VALUE(0)},                                     // reservedSharedMemPerBlock
    {90, 728, kNone, 4, VALUE(0)},                                     // hostRegisterSupported
    {88, 744, kNone, 4, VALUE(0)},                                     // memoryPoolsSupported
    {10002, 1416, 376, 8, VALUE(t.lds_bytes)},                         // maxSharedMemoryPerMP
    {10000, 1424, 352, 4, VALUE(100000)},                              // clockInstructionRate, kHz
    // hipDeviceArch_t: all features but funnel shift, counting barriers, surfaces and
    // dynamic parallelism
    {kNone, 1428, 356, 4, VALUE(0x97ff)},
    {10011, 1464, 764, 4, VALUE(1)},                                   // isLargeBar
    {10012, 1468, 768, 4, VALUE(0)},                                   // asicRevision
    {kNone, kNone, 392, 4, VALUE(is_cdna(t) ? 950 : 1151)},            // gcnArch
    {10014, kNone, kNone, 4, VALUE(0)},                                // imageSupport
    {10015, kNone, kNone, 4, VALUE(t.compute_units)},                  // physicalMultiProcessors
    {10016, kNone, kNone, 4, VALUE(1)},                                // fineGrainSupport
    {10017, kNone, kNone, 4, VALUE(100000)},                           // wallClockRate, kHz
    {10018, kNone, kNone, 4, VALUE(is_cdna(t) ? 8 : 1)},               // numberOfXccs
    {10019, kNone, kNone, 4, VALUE(is_cdna(t) ? 512 : 256)},           // maxVgprsPerThread
    {10020, kNone, kNone, 4, VALUE(is_cdna(t) ? 0x75a0 : 0x1586)},     // pciChipId
    {89, kNone, kNone, 4, VALUE(0)},                                   // virtual memory management
    {10013, kNone, kNone, 4, VALUE(0)},                                // canUseStreamWaitValue
};

#undef VALUE

// The name says what it is: a log that shows it cannot be mistaken for a run on hardware.
std::string device_name(const Target& target) {
  return std::string("Netra simulator (") + target.arch + ")";
}

void fill_properties(const Target& target, int Property::*layout, size_t size, size_t arch_name,
                     void* out) {
  auto* bytes = static_cast<uint8_t*>(out);
  std::memset(bytes, 0, size);
  for (const Property& property : kProperties) {
    if (property.*layout == kNone) continue;
    const int64_t value = property.value(target);
    std::memcpy(bytes + property.*layout, &value, property.bytes);
  }
  const std::string name = device_name(target);
  std::memcpy(bytes, name.c_str(), std::min<size_t>(name.size(), 255));
  std::memcpy(bytes + arch_name, target.full_name,
              std::min<size_t>(std::strlen(target.full_name), 255));
}

hipError_t properties(void* out, int index, bool r0600) {
  if (out == nullptr) return fail(hipErrorInvalidValue, "the property structure is null");
  if (!valid_device(index)) return hipErrorInvalidDevice;
  const Target& target = *Runtime::get().devices[index]->target;
  if (r0600) {
    fill_properties(target, &Property::r0600, kPropertiesSizeR0600, 1160, out);
    for (int i = 0; i < 16; ++i) {   // uuid: zero but for a mark and the ordinal
      static_cast<uint8_t*>(out)[256 + i] = static_cast<uint8_t>("netra-simulator\0"[i]);
    }
    static_cast<uint8_t*>(out)[256 + 15] = static_cast<uint8_t>(index);
  } else {
    fill_properties(target, &Property::r0000, kPropertiesSizeR0000, 396, out);
  }
  return hipSuccess;
}

}  // namespace

int current_device() { return t_device; }

bool valid_device(int index) {
  return index >= 0 && static_cast<size_t>(index) < Runtime::get().devices.size();
}

hipError_t need_device(Device** device) {
  Runtime& rt = Runtime::get();
  if (rt.devices.empty()) return fail(hipErrorNoDevice, rt.device_error);
  *device = rt.devices[t_device].get();
  return hipSuccess;
}

}  // namespace netra::hip

using namespace netra::hip;

extern "C" {

hipError_t hipInit(unsigned flags) {
  return api("hipInit", [&] {
    if (flags != 0) return fail(hipErrorInvalidValue, "flags must be 0");
    Device* device = nullptr;
    return need_device(&device);
  });
}

hipError_t hipDriverGetVersion(int* version) {
  return api("hipDriverGetVersion", [&] {
    if (version == nullptr) return hipErrorInvalidValue;
    *version = kHipVersion;
    return hipSuccess;
  });
}

hipError_t hipRuntimeGetVersion(int* version) {
  return api("hipRuntimeGetVersion", [&] {
    if (version == nullptr) return hipErrorInvalidValue;
    *version = kHipVersion;
    return hipSuccess;
  });
}

hipError_t hipGetDeviceCount(int* count) {
  return api("hipGetDeviceCount", [&] {
    if (count == nullptr) return hipErrorInvalidValue;
    Runtime& rt = Runtime::get();
    *count = static_cast<int>(rt.devices.size());
    return *count != 0 ? hipSuccess : fail(hipErrorNoDevice, rt.device_error);
  });
}

hipError_t hipGetDevice(int* index) {
  return api("hipGetDevice", [&] {
    Device* device = nullptr;
    if (index == nullptr) return hipErrorInvalidValue;
    const hipError_t code = need_device(&device);
    if (code == hipSuccess) *index = device->index;
    return code;
  });
}

hipError_t hipSetDevice(int index) {
  return api("hipSetDevice", [&] {
    Device* device = nullptr;
    const hipError_t code = need_device(&device);
    if (code != hipSuccess) return code;
    if (!valid_device(index)) {
      return fail(hipErrorInvalidDevice, "device " + std::to_string(index) + " does not exist");
    }
    t_device = index;
    return hipSuccess;
  });
}

hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
  return api("hipDeviceGet", [&] {
    if (device == nullptr) return hipErrorInvalidValue;
    if (!valid_device(ordinal)) return hipErrorInvalidDevice;
    *device = ordinal;
    return hipSuccess;
  });
}

// 1472 bytes are written; what ROCm's headers call hipGetDeviceProperties since HIP 6.
hipError_t hipGetDevicePropertiesR0600(void* out, int index) {
  return api("hipGetDevicePropertiesR0600", [&] { return properties(out, index, true); });
}

// The older structure of 792 bytes, for programs built before HIP 6.
hipError_t hipGetDevicePropertiesR0000(void* out, int index) {
  return api("hipGetDevicePropertiesR0000", [&] { return properties(out, index, false); });
}

hipError_t hipGetDeviceProperties(void* out, int index) {
  return api("hipGetDeviceProperties", [&] { return properties(out, index, false); });
}

hipError_t hipDeviceGetAttribute(int* value, int attribute, int index) {
  return api("hipDeviceGetAttribute", [&] {
    if (value == nullptr) return hipErrorInvalidValue;
    if (!valid_device(index)) return hipErrorInvalidDevice;
    for (const Property& property : kProperties) {
      if (property.attribute != attribute || attribute == kNone) continue;
      const int64_t wide = property.value(*Runtime::get().devices[index]->target);
      *value = static_cast<int>(std::min<int64_t>(wide, INT_MAX));
      return hipSuccess;
    }
    return fail(hipErrorInvalidValue, "device attribute " + std::to_string(attribute) +
                                          " is not known to the simulator");
  });
}

hipError_t hipDeviceGetName(char* name, int length, hipDevice_t index) {
  return api("hipDeviceGetName", [&] {
    if (name == nullptr || length <= 0) return hipErrorInvalidValue;
    if (!valid_device(index)) return hipErrorInvalidDevice;
    const std::string text = device_name(*Runtime::get().devices[index]->target);
    const size_t copied = std::min(text.size(), static_cast<size_t>(length) - 1);
    std::memcpy(name, text.c_str(), copied);
    name[copied] = '\0';
    return hipSuccess;
  });
}

hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t index) {
  return api("hipDeviceTotalMem", [&] {
    if (bytes == nullptr) return hipErrorInvalidValue;
    if (!valid_device(index)) return hipErrorInvalidDevice;
    *bytes = Runtime::get().devices[index]->target->memory_bytes;
    return hipSuccess;
  });
}

hipError_t hipDeviceSynchronize() {
  return api("hipDeviceSynchronize", [&] {
    Device* device = nullptr;
    hipError_t code = need_device(&device);
    if (code == hipSuccess) code = forbid_during_any_capture("hipDeviceSynchronize");
    return code == hipSuccess ? synchronize(*device) : code;
  });
}

}  // extern "C"
