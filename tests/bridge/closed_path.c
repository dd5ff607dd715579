/* Counts what a dispatch does beside HIP's own work: memory, files, symbols, locks.
 *
 * This program's own malloc, read, dlsym and so on take the place of libc's for the bridge too. The
 * HIP library is hip_proxy.c, which says when HIP is inside. usage: closed_path CATALOG COUNT MODE
 * with MODE eager, capture, miss, or control (which allocates on purpose). Prints the counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "netra_bridge.h"

extern __thread int proxy_inside;       /* > 0 while the HIP library works */
extern unsigned long proxy_launches;    /* of kernels */
extern unsigned long proxy_waits;       /* synchronising and allocating calls */

static __thread int armed;
static unsigned long memory, files, symbols, locks;

#define COUNT(counter) \
  do { if (armed && proxy_inside == 0) ++counter; } while (0)

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void __libc_free(void*);
void* malloc(size_t size) { COUNT(memory); return __libc_malloc(size); }
void* calloc(size_t n, size_t size) { COUNT(memory); return __libc_calloc(n, size); }
void* realloc(void* old, size_t size) { COUNT(memory); return __libc_realloc(old, size); }
void free(void* old) { COUNT(memory); __libc_free(old); }
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  COUNT(files);
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
ssize_t read(int file, void* to, size_t size) { COUNT(files); return syscall(SYS_read, file, to, size); }
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  COUNT(files);
  return (void*)syscall(SYS_mmap, at, size, protection, flags, file, offset);
}
void* dlsym(void* handle, const char* name) {
  static void* (*real)(void*, const char*);
  if (real == NULL) real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (real == NULL) real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  COUNT(symbols);
  return real(handle, name);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static int (*real)(pthread_mutex_t*);
  if (real == NULL) real = dlvsym(RTLD_NEXT, "pthread_mutex_lock", "GLIBC_2.2.5");
  COUNT(locks);
  return real(mutex);
}

int hipMalloc(void** pointer, size_t bytes);
int hipStreamCreateWithFlags(void** stream, unsigned flags);
int hipStreamBeginCapture(void* stream, int mode);
int hipStreamEndCapture(void* stream, void** graph);

static void check(int status, const char* what) {
  if (status >= 0) return;
  fprintf(stderr, "%s: %s: %s\n", what, netra_status_name(status), netra_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int count = atoi(argv[2]);
  const char* mode = argv[3];
  netra_bridge_options options = {sizeof options, argv[1], NULL, NULL, 0, 0};
  netra_bridge* bridge = NULL;
  check(netra_bridge_open(&options, &bridge), "open");
  check(netra_bridge_prepare(bridge, "router.gemv", NULL), "prepare");
  const netra_catalog* catalog = netra_bridge_catalog(bridge);
  const int op = netra_catalog_op(catalog, "router.gemv");
  void *in = NULL, *weight = NULL, *out = NULL, *stream = NULL, *graph = NULL;
  if (hipMalloc(&in, 4096) || hipMalloc(&weight, 1 << 20) || hipMalloc(&out, 512)) return 1;
  if (hipStreamCreateWithFlags(&stream, 1)) return 1;
  const int64_t in_shape[] = {1, 2048}, strides[] = {2048, 1}, weight_shape[] = {256, 2048};
  const int64_t out_shape[] = {1, 256}, out_strides[] = {256, 1};
  netra_slot slots[3];
  memset(slots, 0, sizeof slots);
  const int x = netra_catalog_slot(catalog, op, "hidden"), o = netra_catalog_slot(catalog, op, "out"),
            w = netra_catalog_slot(catalog, op, "weight");
  const uint64_t rows = netra_catalog_name(catalog, "row_major");
  slots[x].kind = slots[o].kind = slots[w].kind = NETRA_TENSOR;
  slots[x].value.tensor = (netra_tensor){(uint64_t)in, 4096, in_shape, strides, rows, 2, NETRA_BF16};
  slots[w].value.tensor =
      (netra_tensor){(uint64_t)weight, 1 << 20, weight_shape, strides, rows, 2, NETRA_BF16};
  slots[o].value.tensor =
      (netra_tensor){(uint64_t)out, 512, out_shape, out_strides, rows, 2, NETRA_BF16};
  if (strcmp(mode, "miss") == 0) slots[x].value.tensor.dtype = NETRA_F16;
  netra_call call = {sizeof call, op, 3, slots, 0, netra_catalog_name(catalog, "decode"), 0, 0};
  netra_decision decision = {sizeof decision, 0, 0, NULL};
  if (strcmp(mode, "capture") == 0 && hipStreamBeginCapture(stream, 0)) return 1;
  proxy_launches = proxy_waits = 0;
  int results[3] = {0, 0, 0};
  for (int i = 0; i < count; ++i) {
    armed = 1;
    if (strcmp(mode, "control") == 0) {
      void* volatile kept = malloc(16);   /* volatile: no compiler may leave the pair out */
      free(kept);
    }
    const int status = netra_bridge_dispatch(bridge, &call, NULL, stream, &decision);
    armed = 0;
    check(status, "dispatch");
    ++results[status];
  }
  const unsigned long launches = proxy_launches, waits = proxy_waits;
  if (strcmp(mode, "capture") == 0 && hipStreamEndCapture(stream, &graph)) return 1;
  printf("launched %d declined %d kernels %lu memory %lu files %lu symbols %lu locks %lu waits %lu\n",
         results[0], results[1], launches, memory, files, symbols, locks, waits);
  return 0;
}
