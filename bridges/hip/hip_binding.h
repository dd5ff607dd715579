// The HIP library of this process, found and bound by symbol.
//
// No HIP header is used: the few functions and constants below are the whole of the ABI that the
// bridge relies on, and they are the same from ROCm 5 to 7 (the device properties excepted, which
// is why their versioned symbol is asked for by name).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "netra_bridge.h"

namespace netra::bridge {

using Stream = void*;
using Module = void*;
using Function = void*;

struct Hip {
  int (*init)(unsigned flags);
  int (*get_device_count)(int* count);
  int (*get_device)(int* device);
  int (*set_device)(int device);
  int (*get_properties)(void* properties, int device);
  int (*runtime_version)(int* version);
  int (*module_load_data)(Module* module, const void* image);
  int (*module_unload)(Module module);
  int (*module_get_function)(Function* function, Module module, const char* name);
  int (*func_get_attribute)(int* value, int attribute, Function function);
  int (*module_launch)(Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned lds, Stream stream, void** params,
                       void** extra);
  int (*stream_is_capturing)(Stream stream, int* status);
  int (*pointer_attributes)(void* attributes, const void* pointer);
  int (*pointer_attribute)(void* value, int attribute, void* pointer);
  const char* (*error_name)(int error);
  const char* (*error_string)(int error);
  int (*get_last_error)();

  bool old_properties = false;  // the R0000 layout, from a library that has no R0600
  bool simulated = false;
  std::string path;

  // "hipErrorInvalidImage (200): device kernel image is invalid", and what such a code often means.
  void describe(int error, char* text, size_t size) const;
};

// HIP error codes that the bridge tells apart.
enum HipError : int {
  kHipSuccess = 0,
  kHipErrorInvalidValue = 1,
  kHipErrorIllegalAddress = 700,
  kHipErrorContextIsDestroyed = 709,
  kHipErrorLaunchFailure = 719,
};

// hipPointer_attribute.
constexpr int kRangeStart = 11;
constexpr int kRangeSize = 12;

// hipFunction_attribute.
constexpr int kMaxThreadsPerBlock = 0;

// Finds and binds the library once per process; later calls check that `asked` (may be null) is the
// one that is bound. Returns null and sets the thread's error on failure.
const Hip* bind_hip(const char* asked);

}  // namespace netra::bridge
