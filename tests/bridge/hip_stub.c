/* A HIP library with no device behind it: it records what was asked and fails where it is told.
 *
 *   STUB_ARCH    gcnArchName of its one device (default gfx950:sramecc+:xnack-)
 *   STUB_FAIL    "hipModuleLoadData=200": that function returns that code
 *   -DNO_SYMBOL  leaves hipStreamIsCapturing out
 *   -DOLD        has the properties of ROCm 5 only
 *
 * stubCalls() gives the names of the calls since stubReset(), stubLaunch() the last launch.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned grid[3], block[3], lds;
  void *stream, *params;
  size_t size;
  unsigned char kernarg[256];
} Launch;

static char g_calls[1 << 16];
static Launch g_launch;
static int g_device, g_last_error, g_capturing;
static struct { char *base; size_t size; } g_blocks[64];

const char *stubCalls(void) { return g_calls; }
void stubReset(void) { g_calls[0] = 0; }
const Launch *stubLaunch(void) { return &g_launch; }
void stubCapturing(int on) { g_capturing = on; }
int stubPending(void) { return g_last_error; }

static int call(const char *name) {
  size_t used = strlen(g_calls);
  snprintf(g_calls + used, sizeof g_calls - used, "%s ", name);
  const char *fail = getenv("STUB_FAIL");
  size_t length = strlen(name);
  if (fail && !strncmp(fail, name, length) && fail[length] == '=')
    return g_last_error = atoi(fail + length + 1);
  return 0;
}

int hipInit(unsigned flags) { (void)flags; return call("hipInit"); }
int hipGetDeviceCount(int *count) { *count = 1; return call("hipGetDeviceCount"); }
int hipGetDevice(int *device) { *device = g_device; return call("hipGetDevice"); }
int hipSetDevice(int device) { g_device = device; return call("hipSetDevice"); }
int hipRuntimeGetVersion(int *version) {
#ifdef OLD
  *version = 50221153;
#else
  *version = 70125424;
#endif
  return call("hipRuntimeGetVersion");
}

static void describe(char *properties, int arch_at, int warp_at, int cus_at) {
  const char *arch = getenv("STUB_ARCH");
  strcpy(properties + arch_at, arch ? arch : "gfx950:sramecc+:xnack-");
  *(int *)(properties + warp_at) = 64;
  *(int *)(properties + cus_at) = 256;
}

/* Every HIP library exports the plain name with the old structure. */
int hipGetDeviceProperties(void *properties, int device) {
  (void)device;
  memset(properties, 0, 792);
  describe(properties, 396, 276, 336);
  *(size_t *)((char *)properties + 264) = 65536;
  return call("hipGetDeviceProperties");
}

#ifndef OLD
int hipGetDevicePropertiesR0600(void *properties, int device) {
  (void)device;
  memset(properties, 0, 1472);
  describe(properties, 1160, 308, 388);
  *(size_t *)((char *)properties + 296) = 65536;
  *(size_t *)((char *)properties + 1416) = 163840;
  return call("hipGetDevicePropertiesR0600");
}
#endif

int hipModuleLoadData(void **module, const void *image) {
  *module = (void *)image;
  return call("hipModuleLoadData");
}
int hipModuleUnload(void *module) { (void)module; return call("hipModuleUnload"); }
int hipModuleGetFunction(void **function, void *module, const char *name) {
  (void)module;
  *function = strdup(name);
  return call("hipModuleGetFunction");
}
int hipFuncGetAttribute(int *value, int attribute, void *function) {
  (void)attribute, (void)function;
  *value = 1024;
  return call("hipFuncGetAttribute");
}

int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned lds, void *stream, void **params,
                          void **extra) {
  (void)function;
  const Launch launch = {{gx, gy, gz}, {bx, by, bz}, lds, stream, params, 0, {0}};
  g_launch = launch;
  if (extra) {
    if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3) return 1;
    g_launch.size = *(size_t *)extra[3];
    memcpy(g_launch.kernarg, extra[1], g_launch.size);
  }
  return call("hipModuleLaunchKernel");
}

#ifndef NO_SYMBOL
int hipStreamIsCapturing(void *stream, int *status) {
  (void)stream;
  *status = g_capturing;
  return call("hipStreamIsCapturing");
}
#endif

int hipMalloc(void **pointer, size_t size) {
  int failed = call("hipMalloc");
  for (int i = 0; !failed && i < 64; ++i)
    if (!g_blocks[i].base) {
      *pointer = g_blocks[i].base = calloc(1, size);
      g_blocks[i].size = size;
      return 0;
    }
  return failed ? failed : 2;
}
int hipFree(void *pointer) {
  for (int i = 0; i < 64; ++i)
    if (g_blocks[i].base == pointer) g_blocks[i].base = NULL;
  free(pointer);
  return call("hipFree");
}

static int find(const void *pointer) {
  for (int i = 0; i < 64; ++i)
    if (g_blocks[i].base && (char *)pointer >= g_blocks[i].base &&
        (char *)pointer < g_blocks[i].base + g_blocks[i].size)
      return i;
  return -1;
}
int hipPointerGetAttributes(void *attributes, const void *pointer) {
  memset(attributes, 0, 32);
#ifdef OLD
  if (find(pointer) < 0) return g_last_error = 1;
  ((int *)attributes)[0] = 1;
#else
  ((int *)attributes)[0] = find(pointer) < 0 ? 0 : 2;
#endif
  return call("hipPointerGetAttributes");
}
int hipPointerGetAttribute(void *value, int attribute, void *pointer) {
  int block = find(pointer);
  if (block < 0) return g_last_error = 1;
  if (attribute == 11) *(char **)value = g_blocks[block].base;
  if (attribute == 12) *(size_t *)value = g_blocks[block].size;
  return call("hipPointerGetAttribute");
}

const char *hipGetErrorName(int error) { return error == 709 ? "hipErrorContextIsDestroyed" : "hipErrorStub"; }
const char *hipGetErrorString(int error) { (void)error; return "as the test asked"; }
int hipGetLastError(void) {
  int error = g_last_error;
  g_last_error = 0;
  return error;
}
