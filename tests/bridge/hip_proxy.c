/* A HIP library that passes every call on to another one, $PROXY_TARGET, and tells when it is inside.
 * Failures can be made: PROXY_FAIL=NAME:COUNT:CODE lets call number COUNT (from 1) of NAME return
 * CODE without doing anything. With PROXY_STILL set, kernels are counted and not run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) __thread int proxy_inside;
__attribute__((visibility("default"))) unsigned long proxy_launches, proxy_waits;

static void* target(void) {
  static void* handle;
  if (handle == NULL) {
    handle = dlopen(getenv("PROXY_TARGET"), RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
      fprintf(stderr, "hip_proxy: %s\n", dlerror());
      abort();
    }
  }
  return handle;
}

static int still(void) {
  static int known = -1;
  if (known < 0) known = getenv("PROXY_STILL") != NULL;
  return known;
}

/* The code that this call must fail with, or 0. */
static int failing(const char* name, unsigned long call) {
  const char* plan = getenv("PROXY_FAIL");
  const size_t length = strlen(name);
  if (plan == NULL || strncmp(plan, name, length) != 0 || plan[length] != ':') return 0;
  char* end = NULL;
  if (strtoul(plan + length + 1, &end, 10) != call || *end != ':') return 0;
  return atoi(end + 1);
}

#define PASS(SKIP, COUNTER, NAME, PARAMETERS, ARGUMENTS)                          \
  __attribute__((visibility("default"))) int NAME PARAMETERS;               \
  int NAME PARAMETERS {                                                     \
    static int(*real) PARAMETERS;                                           \
    static unsigned long calls;                                             \
    ++proxy_inside;                                                         \
    COUNTER;                                                                \
    if (real == NULL) real = (int(*) PARAMETERS)dlsym(target(), #NAME);     \
    int code = failing(#NAME, ++calls);                                     \
    if (code == 0 && !(SKIP)) code = real ARGUMENTS;                                   \
    --proxy_inside;                                                         \
    return code;                                                            \
  }

typedef void* P;
#define NONE (void)0
PASS(0, NONE, hipInit, (unsigned a), (a))
PASS(0, NONE, hipGetDeviceCount, (P a), (a))
PASS(0, NONE, hipGetDevice, (P a), (a))
PASS(0, NONE, hipSetDevice, (int a), (a))
PASS(0, NONE, hipGetDevicePropertiesR0600, (P a, int b), (a, b))
PASS(0, NONE, hipRuntimeGetVersion, (P a), (a))
PASS(0, ++proxy_waits, hipModuleLoadData, (P a, P b), (a, b))
PASS(0, ++proxy_waits, hipModuleUnload, (P a), (a))
PASS(0, NONE, hipModuleGetFunction, (P a, P b, P c), (a, b, c))
PASS(0, NONE, hipFuncGetAttribute, (P a, int b, P c), (a, b, c))
PASS(still(), __atomic_fetch_add(&proxy_launches, 1, __ATOMIC_RELAXED), hipModuleLaunchKernel,
     (P f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned h, P s,
      P p, P x),
     (f, a, b, c, d, e, g, h, s, p, x))
PASS(0, NONE, hipStreamIsCapturing, (P a, P b), (a, b))
PASS(0, NONE, hipPointerGetAttributes, (P a, P b), (a, b))
PASS(0, NONE, hipPointerGetAttribute, (P a, int b, P c), (a, b, c))
PASS(0, NONE, hipGetLastError, (void), ())
PASS(0, ++proxy_waits, hipMalloc, (P a, size_t b), (a, b))
PASS(0, ++proxy_waits, hipFree, (P a), (a))
PASS(0, ++proxy_waits, hipMemcpy, (P a, P b, size_t c, int d), (a, b, c, d))
PASS(0, ++proxy_waits, hipDeviceSynchronize, (void), ())
PASS(0, ++proxy_waits, hipStreamSynchronize, (P a), (a))
PASS(0, NONE, hipStreamCreateWithFlags, (P a, unsigned b), (a, b))
PASS(0, NONE, hipStreamBeginCapture, (P a, int b), (a, b))
PASS(0, NONE, hipStreamEndCapture, (P a, P b), (a, b))

#define TEXT(NAME)                                                                   \
  __attribute__((visibility("default"))) const char* NAME(int code);                 \
  const char* NAME(int code) {                                                       \
    static const char* (*real)(int);                                                 \
    ++proxy_inside;                                                                  \
    if (real == NULL) real = (const char* (*)(int))dlsym(target(), #NAME);           \
    const char* text = real(code);                                                   \
    --proxy_inside;                                                                  \
    return text;                                                                     \
  }
TEXT(hipGetErrorName)
TEXT(hipGetErrorString)

/* The bridge takes a library that has it for the simulator. */
__attribute__((visibility("default"))) const char* netraSimInspect(void);
const char* netraSimInspect(void) { return ""; }
