// The process's one runtime: its devices, its errors, and the netraSim* functions.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hip_runtime_state.h"
#include "json.h"

namespace netra::hip {
namespace {

struct ErrorRow {
  int code;
  const char* name;
  const char* text;
};

constexpr ErrorRow kErrors[] = {
    {0, "hipSuccess", "no error"},
    {1, "hipErrorInvalidValue", "invalid argument"},
    {2, "hipErrorOutOfMemory", "out of memory"},
    {3, "hipErrorNotInitialized", "initialization error"},
    {4, "hipErrorDeinitialized", "driver shutting down"},
    {5, "hipErrorProfilerDisabled", "profiler disabled while using external profiling tool"},
    {6, "hipErrorProfilerNotInitialized", "profiler is not initialized"},
    {7, "hipErrorProfilerAlreadyStarted", "profiler already started"},
    {8, "hipErrorProfilerAlreadyStopped", "profiler already stopped"},
    {9, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {12, "hipErrorInvalidPitchValue", "invalid pitch argument"},
    {13, "hipErrorInvalidSymbol", "invalid device symbol"},
    {17, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {21, "hipErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {35, "hipErrorInsufficientDriver", "driver version is insufficient for runtime version"},
    {52, "hipErrorMissingConfiguration", "__global__ function call is not configured"},
    {53, "hipErrorPriorLaunchFailure", "unspecified launch failure in prior launch"},
    {98, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {100, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {101, "hipErrorInvalidDevice", "invalid device ordinal"},
    {200, "hipErrorInvalidImage", "device kernel image is invalid"},
    {201, "hipErrorInvalidContext", "invalid device context"},
    {202, "hipErrorContextAlreadyCurrent", "context is already current context"},
    {205, "hipErrorMapFailed", "mapping of buffer object failed"},
    {206, "hipErrorUnmapFailed", "unmapping of buffer object failed"},
    {207, "hipErrorArrayIsMapped", "array is mapped"},
    {208, "hipErrorAlreadyMapped", "resource already mapped"},
    {209, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {210, "hipErrorAlreadyAcquired", "resource already acquired"},
    {211, "hipErrorNotMapped", "resource not mapped"},
    {212, "hipErrorNotMappedAsArray", "resource not mapped as array"},
    {213, "hipErrorNotMappedAsPointer", "resource not mapped as pointer"},
    {214, "hipErrorECCNotCorrectable", "uncorrectable ECC error encountered"},
    {215, "hipErrorUnsupportedLimit", "limit is not supported on this architecture"},
    {216, "hipErrorContextAlreadyInUse", "exclusive-thread device already in use"},
    {217, "hipErrorPeerAccessUnsupported", "peer access is not supported between these devices"},
    {218, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {219, "hipErrorInvalidGraphicsContext", "invalid OpenGL or DirectX context"},
    {300, "hipErrorInvalidSource", "device kernel image is invalid"},
    {301, "hipErrorFileNotFound", "file not found"},
    {302, "hipErrorSharedObjectSymbolNotFound", "shared object symbol not found"},
    {303, "hipErrorSharedObjectInitFailed", "shared object initialization failed"},
    {304, "hipErrorOperatingSystem", "OS call failed or operation not supported on this OS"},
    {400, "hipErrorInvalidHandle", "invalid resource handle"},
    {401, "hipErrorIllegalState", "the operation cannot be performed in the present state"},
    {500, "hipErrorNotFound", "named symbol not found"},
    {600, "hipErrorNotReady", "device not ready"},
    {700, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "hipErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "hipErrorLaunchTimeOut", "the launch timed out and was terminated"},
    {704, "hipErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {705, "hipErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {708, "hipErrorSetOnActiveProcess", "cannot set while device is active in this process"},
    {709, "hipErrorContextIsDestroyed", "context is destroyed"},
    {710, "hipErrorAssert", "device-side assert triggered"},
    {712, "hipErrorHostMemoryAlreadyRegistered", "part or all of the memory is already mapped"},
    {713, "hipErrorHostMemoryNotRegistered", "pointer does not correspond to a registered region"},
    {719, "hipErrorLaunchFailure", "unspecified launch failure"},
    {720, "hipErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {801, "hipErrorNotSupported", "operation not supported"},
    {900, "hipErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {901, "hipErrorStreamCaptureInvalidated", "operation failed due to an error during capture"},
    {902, "hipErrorStreamCaptureMerge", "operation would merge separate capture sequences"},
    {903, "hipErrorStreamCaptureUnmatched", "capture was not ended in the stream where it began"},
    {904, "hipErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {905, "hipErrorStreamCaptureIsolation", "dependency on uncaptured work in another stream"},
    {906, "hipErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "hipErrorCapturedEvent", "operation not permitted on an event recorded in a capture"},
    {908, "hipErrorStreamCaptureWrongThread",
     "attempt to end a thread-local capture from another thread"},
    {910, "hipErrorGraphExecUpdateFailure", "the graph update was not performed"},
    {911, "hipErrorInvalidChannelDescriptor", "invalid channel descriptor"},
    {912, "hipErrorInvalidTexture", "invalid texture"},
    {999, "hipErrorUnknown", "unknown error"},
    {1052, "hipErrorRuntimeMemory", "runtime memory call returned an error"},
    {1053, "hipErrorRuntimeOther", "runtime call other than memory returned an error"},
    {1054, "hipErrorTbd", "to be determined or implemented"},
};

const ErrorRow* find_error(int code) {
  for (const ErrorRow& row : kErrors) {
    if (row.code == code) return &row;
  }
  return nullptr;
}

thread_local hipError_t t_last_error = hipSuccess;
thread_local std::string t_error_text;

bool logging() {
  static const bool on = [] {
    const char* value = std::getenv("NETRA_SIM_LOG");
    return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
  }();
  return on;
}

}  // namespace

Runtime& Runtime::get() {
  static Runtime* runtime = new Runtime;
  return *runtime;
}

// NETRA_SIM_DEVICES lists the devices. One unknown name spoils the list: a program that asked for
// two targets must not silently run on one.
Runtime::Runtime() {
  const char* check = std::getenv("NETRA_SIM_CHECK");
  options.checked = check != nullptr && std::strcmp(check, "1") == 0;
  const char* value = std::getenv("NETRA_SIM_DEVICES");
  const std::string list = value == nullptr || *value == '\0' ? "gfx950" : value;
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    const size_t first = list.find_first_not_of(" \t", at);
    std::string name = first < comma ? list.substr(first, comma - first) : "";
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.pop_back();
    const Target* target = find_target(name);
    if (target == nullptr) {
      device_error = "NETRA_SIM_DEVICES=" + list + ": unknown device " + json::quote(name) +
                     "; known are gfx950 and gfx1151";
      std::fprintf(stderr, "netra: %s\n", device_error.c_str());
      devices.clear();
      return;
    }
    auto device = std::make_unique<Device>();
    device->index = static_cast<int>(devices.size());
    device->target = target;
    device->null_stream = std::make_shared<Stream>();
    device->null_stream->device = device->index;
    device->null_stream->is_null = true;
    devices.push_back(std::move(device));
    at = comma + 1;
  }
}

hipError_t fail(int code, const std::string& text) {
  t_error_text = text;
  return static_cast<hipError_t>(code);
}

hipError_t finish(const char* function, hipError_t code) {
  if (code == hipSuccess || code == hipErrorNotReady) return code;
  t_last_error = code;
  if (logging()) {
    std::fprintf(stderr, "netra: %s: %s (%d)%s%s\n", function, error_name(code), code,
                 t_error_text.empty() ? "" : ": ", t_error_text.c_str());
  }
  return code;
}

const std::string& last_error_text() { return t_error_text; }
void clear_error_text() { t_error_text.clear(); }

const char* error_name(int code) {
  const ErrorRow* row = find_error(code);
  return row != nullptr ? row->name : "hipErrorUnknown";
}

Module::~Module() {
  forget_program(object.get());
  Memory& memory = Runtime::get().memory;
  for (const auto& [unused, function] : functions) {
    if (function->kernarg != 0) memory.release(function->kernarg);
  }
  for (uint64_t base : object->regions) memory.release(base);
}

namespace {

int give_text(const std::string& text, char** out) {
  if (out == nullptr) return hipErrorInvalidValue;
  *out = static_cast<char*>(std::malloc(text.size() + 1));
  if (*out == nullptr) return hipErrorOutOfMemory;
  std::memcpy(*out, text.c_str(), text.size() + 1);
  return hipSuccess;
}

}  // namespace
}  // namespace netra::hip

using namespace netra;
using namespace netra::hip;

extern "C" {

hipError_t hipGetLastError() {
  const hipError_t code = t_last_error;
  t_last_error = hipSuccess;
  return code;
}

hipError_t hipPeekAtLastError() { return t_last_error; }

const char* hipGetErrorName(hipError_t code) { return error_name(code); }

const char* hipGetErrorString(hipError_t code) {
  const ErrorRow* row = find_error(code);
  return row != nullptr ? row->text : "unknown error";
}

// The sentence behind the calling thread's last failed HIP call; "" when the code says it all.
// Valid until the thread's next HIP call.
const char* netraSimLastError() { return last_error_text().c_str(); }

// The last kernel fault of the process: kernel, pc, .s line, wave, lane, address, nearest region.
// "" when there was none since the last reset. Valid until the thread asks again.
const char* netraSimLastFault() {
  static thread_local std::string text;
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  text = rt.last_fault;
  return text.c_str();
}

// Clears the sticky error of every device, the last fault and the findings.
int netraSimReset() {
  return api("netraSimReset", [] {
    Runtime& rt = Runtime::get();
    for (auto& device : rt.devices) {
      std::lock_guard work(device->work);
      std::lock_guard lock(rt.mutex);
      device->fault = 0;
      device->fault_reported = false;
    }
    std::lock_guard lock(rt.mutex);
    rt.last_fault.clear();
    rt.findings.clear();
    return hipSuccess;
  });
}

// Forgets the findings alone.
int netraSimForgetFindings() {
  return api("netraSimForgetFindings", [] {
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    rt.findings.clear();
    return hipSuccess;
  });
}

// on != 0: later launches run on one host thread in the order that the seed gives.
int netraSimSetSeed(uint64_t seed, int on) {
  return api("netraSimSetSeed", [&] {
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    rt.options.seeded = on != 0;
    rt.options.seed = seed;
    return hipSuccess;
  });
}

// on != 0: later launches are watched by the sanitizer, on one host thread. The environment variable
// NETRA_SIM_CHECK=1 starts a process that way.
int netraSimSetChecked(int on) {
  return api("netraSimSetChecked", [&] {
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    rt.options.checked = on != 0;
    return hipSuccess;
  });
}

// on != 0: later launches count more than instructions (docs/simulator-run.md), on one host thread.
int netraSimSetCounting(int on) {
  return api("netraSimSetCounting", [&] {
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    rt.options.counting = on != 0;
    return hipSuccess;
  });
}

// limit != 0: of each later launch, the first `limit` instructions are written down, on one host
// thread. 0 ends that.
int netraSimSetTrace(uint64_t limit) {
  return api("netraSimSetTrace", [&] {
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    rt.options.trace_limit = limit;
    return hipSuccess;
  });
}

// The trace of the last launch, a line per instruction; "" when none was asked for. Free it with
// netraSimFree.
int netraSimTrace(char** out) {
  return api("netraSimTrace", [&] {
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    return static_cast<hipError_t>(give_text(rt.last_trace, out));
  });
}

// The counters of the last launch as one flat JSON object. Free it with netraSimFree.
int netraSimCounters(char** out) {
  return api("netraSimCounters", [&] {
    json::Writer json;
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    json.open('{');
    for (const auto& [name, value] : rt.last_counters) json.key(name).number(value);
    json.close('}');
    return static_cast<hipError_t>(give_text(json.text(), out));
  });
}

// What the observers reported since the last reset: a JSON list of objects (docs/sanitizer.md).
// Free it with netraSimFree.
int netraSimFindings(char** out) {
  return api("netraSimFindings", [&] {
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    std::string text = "[";
    for (const Finding& finding : rt.findings) text += (text.size() > 1 ? "," : "") + finding.json();
    return static_cast<hipError_t>(give_text(text + "]", out));
  });
}

void netraSimFree(char* text) { std::free(text); }

}  // extern "C"
