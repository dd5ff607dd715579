// HIP's binary interface in our own words: the values, layouts and byte offsets that a program
// compiled against ROCm's headers relies on. Handles point to the runtime's own objects.
#pragma once

#include <cstddef>
#include <cstdint>

namespace netra::hip {
struct Module;
struct Function;
struct Stream;
struct Event;
struct Graph;
struct Node;
struct Exec;
}  // namespace netra::hip

using hipModule_t = netra::hip::Module*;
using hipFunction_t = netra::hip::Function*;
using hipStream_t = netra::hip::Stream*;
using hipEvent_t = netra::hip::Event*;
using hipGraph_t = netra::hip::Graph*;
using hipGraphNode_t = netra::hip::Node*;
using hipGraphExec_t = netra::hip::Exec*;
using hipDevice_t = int;
using hipDeviceptr_t = void*;

enum hipError_t : int32_t {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorNotInitialized = 3,
  hipErrorInvalidConfiguration = 9,
  hipErrorInvalidDevicePointer = 17,
  hipErrorInvalidMemcpyDirection = 21,
  hipErrorInvalidDeviceFunction = 98,
  hipErrorNoDevice = 100,
  hipErrorInvalidDevice = 101,
  hipErrorInvalidImage = 200,
  hipErrorNoBinaryForGpu = 209,
  hipErrorInvalidKernelFile = 218,
  hipErrorFileNotFound = 301,
  hipErrorSharedObjectSymbolNotFound = 302,
  hipErrorInvalidHandle = 400,
  hipErrorIllegalState = 401,
  hipErrorNotFound = 500,
  hipErrorNotReady = 600,
  hipErrorHostMemoryAlreadyRegistered = 712,
  hipErrorHostMemoryNotRegistered = 713,
  hipErrorCooperativeLaunchTooLarge = 720,
  hipErrorIllegalAddress = 700,
  hipErrorContextIsDestroyed = 709,
  hipErrorLaunchFailure = 719,
  hipErrorNotSupported = 801,
  hipErrorStreamCaptureUnsupported = 900,
  hipErrorStreamCaptureInvalidated = 901,
  hipErrorStreamCaptureMerge = 902,
  hipErrorStreamCaptureUnmatched = 903,
  hipErrorStreamCaptureUnjoined = 904,
  hipErrorStreamCaptureIsolation = 905,
  hipErrorStreamCaptureImplicit = 906,
  hipErrorCapturedEvent = 907,
  hipErrorStreamCaptureWrongThread = 908,
  hipErrorGraphExecUpdateFailure = 910,
  hipErrorUnknown = 999,
};

enum hipMemcpyKind : int32_t {
  hipMemcpyHostToHost = 0,
  hipMemcpyHostToDevice = 1,
  hipMemcpyDeviceToHost = 2,
  hipMemcpyDeviceToDevice = 3,
  hipMemcpyDefault = 4,
  hipMemcpyDeviceToDeviceNoCU = 1024,
};

// The values of HIP 6 and later; HIP 5 counted host as 0 and device as 1.
enum hipMemoryType : int32_t {
  hipMemoryTypeUnregistered = 0,
  hipMemoryTypeHost = 1,
  hipMemoryTypeDevice = 2,
};

enum hipStreamCaptureMode : int32_t {
  hipStreamCaptureModeGlobal = 0,
  hipStreamCaptureModeThreadLocal = 1,
  hipStreamCaptureModeRelaxed = 2,
};

enum hipStreamCaptureStatus : int32_t {
  hipStreamCaptureStatusNone = 0,
  hipStreamCaptureStatusActive = 1,
  hipStreamCaptureStatusInvalidated = 2,
};

enum hipGraphNodeType : int32_t {
  hipGraphNodeTypeKernel = 0,
  hipGraphNodeTypeMemcpy = 1,
  hipGraphNodeTypeMemset = 2,
  hipGraphNodeTypeHost = 3,
  hipGraphNodeTypeGraph = 4,
  hipGraphNodeTypeEmpty = 5,
  hipGraphNodeTypeWaitEvent = 6,
  hipGraphNodeTypeEventRecord = 7,
  hipGraphNodeTypeMemAlloc = 10,
  hipGraphNodeTypeMemFree = 11,
};

enum hipGraphExecUpdateResult : int32_t {
  hipGraphExecUpdateSuccess = 0,
  hipGraphExecUpdateError = 1,
  hipGraphExecUpdateErrorTopologyChanged = 2,
  hipGraphExecUpdateErrorNodeTypeChanged = 3,
  hipGraphExecUpdateErrorFunctionChanged = 4,
  hipGraphExecUpdateErrorParametersChanged = 5,
  hipGraphExecUpdateErrorNotSupported = 6,
};

enum hipPointer_attribute : int32_t {
  HIP_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  HIP_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  HIP_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
  HIP_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
  HIP_POINTER_ATTRIBUTE_MAPPED = 13,
};

enum hipFunction_attribute : int32_t {
  HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
  HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  HIP_FUNC_ATTRIBUTE_NUM_REGS = 4,
  HIP_FUNC_ATTRIBUTE_PTX_VERSION = 5,
  HIP_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
  HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
  HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
};

constexpr uint32_t hipStreamDefault = 0, hipStreamNonBlocking = 1;
constexpr uint32_t hipEventDisableTiming = 2, hipEventInterprocess = 4;
// Handles that name a stream without being one (the null stream is 0).
constexpr uintptr_t hipStreamLegacyHandle = 1, hipStreamPerThreadHandle = 2;

// hipModuleLaunchKernel's `extra`: exactly {POINTER, buffer, SIZE, &size, END}.
constexpr uintptr_t HIP_LAUNCH_PARAM_BUFFER_POINTER = 1, HIP_LAUNCH_PARAM_BUFFER_SIZE = 2,
                    HIP_LAUNCH_PARAM_END = 3;

struct hipPointerAttribute_t {
  hipMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
  int isManaged;
  unsigned allocationFlags;
};
static_assert(sizeof(hipPointerAttribute_t) == 32 &&
              offsetof(hipPointerAttribute_t, devicePointer) == 8 &&
              offsetof(hipPointerAttribute_t, hostPointer) == 16);

using hipHostFn_t = void (*)(void*);
struct hipHostNodeParams {
  hipHostFn_t fn;
  void* userData;
};

struct hipMemsetParams {
  void* dst;
  unsigned elementSize;   // bytes: 1, 2 or 4
  size_t height, pitch;   // rows, and bytes from one to the next
  unsigned value;
  size_t width;           // elements of a row
};
static_assert(sizeof(hipMemsetParams) == 48 && offsetof(hipMemsetParams, height) == 16 &&
              offsetof(hipMemsetParams, value) == 32 && offsetof(hipMemsetParams, width) == 40);

struct hipDim3 {
  uint32_t x, y, z;
};

// The order differs from CUDA's structure of the same purpose.
struct hipKernelNodeParams {
  hipDim3 blockDim;
  void** extra;
  void* func;
  hipDim3 gridDim;
  void** kernelParams;
  unsigned sharedMemBytes;
};
static_assert(sizeof(hipKernelNodeParams) == 64 && offsetof(hipKernelNodeParams, extra) == 16 &&
              offsetof(hipKernelNodeParams, func) == 24 &&
              offsetof(hipKernelNodeParams, gridDim) == 32 &&
              offsetof(hipKernelNodeParams, kernelParams) == 48 &&
              offsetof(hipKernelNodeParams, sharedMemBytes) == 56);

// hipDeviceProp_t exists twice: the layout of HIP 6 and later (R0600), and the one that the
// unsuffixed symbol still fills (R0000). hip_device.cc writes both by byte offset.
constexpr size_t kPropertiesSizeR0600 = 1472, kPropertiesSizeR0000 = 792;
