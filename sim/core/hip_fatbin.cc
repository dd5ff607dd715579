// The entry points behind kernel<<<...>>>. The simulator runs programs that load modules; a
// program with compiled-in kernels is told so, and every launch of one fails.

#include <atomic>
#include <cstdio>

#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

hipError_t refuse() {
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) {
    std::fprintf(stderr,
                 "netra: this program has kernels compiled into it (kernel<<<...>>>); the "
                 "simulator runs only code objects loaded with hipModuleLoad or "
                 "hipModuleLoadData, so their launches fail with hipErrorNotSupported\n");
  }
  return fail(hipErrorNotSupported, "only HIP module programs are supported");
}

}  // namespace
}  // namespace netra::hip

using namespace netra::hip;

extern "C" {

// Runs before main(): the program must get as far as its own error handling.
void** __hipRegisterFatBinary(const void*) {
  static void* handle = nullptr;
  refuse();
  return &handle;
}

void __hipUnregisterFatBinary(void**) {}
void __hipRegisterFunction(void**, const void*, char*, const char*, unsigned, void*, void*, void*,
                           void*, int*) {}
void __hipRegisterVar(void**, void*, char*, char*, int, size_t, int, int) {}
void __hipRegisterManagedVar(void*, void**, void*, const char*, size_t, unsigned) {}
void __hipRegisterSurface(void**, void*, char*, char*, int, int) {}
void __hipRegisterTexture(void**, void*, char*, char*, int, int, int) {}

hipError_t __hipPushCallConfiguration(hipDim3, hipDim3, size_t, hipStream_t) {
  return api("__hipPushCallConfiguration", refuse);
}

hipError_t __hipPopCallConfiguration(hipDim3*, hipDim3*, size_t*, hipStream_t*) {
  return api("__hipPopCallConfiguration", refuse);
}

hipError_t hipLaunchKernel(const void*, hipDim3, hipDim3, void**, size_t, hipStream_t) {
  return api("hipLaunchKernel", refuse);
}

}  // extern "C"
