/* One op from C: open, prepare, dispatch eagerly, capture a dispatch and replay it, read a decline.
 *
 *   cc -Ibridges/hip bridges/examples/router_gemv.c -o router_gemv \
 *      build/bridge/libnetra_bridge.so build/sim/libamdhip64.so.7 -Wl,-rpath,build/bridge,-rpath,build/sim
 *   NETRA_SIM_DEVICES=gfx950 ./router_gemv build/catalog.bin
 *
 * Link ROCm's libamdhip64 instead, and the same program runs on a GPU (which admits only accepted
 * tactics, or those that NETRA_ADMIT names). It prints a checksum of what the kernel wrote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netra_bridge.h"

/* The few functions of HIP that the program itself needs. */
int hipMalloc(void** pointer, size_t bytes);
int hipFree(void* pointer);
int hipMemcpy(void* to, const void* from, size_t bytes, int kind);
int hipStreamCreateWithFlags(void** stream, unsigned flags);
int hipStreamDestroy(void* stream);
int hipStreamSynchronize(void* stream);
int hipStreamBeginCapture(void* stream, int mode);
int hipStreamEndCapture(void* stream, void** graph);
int hipGraphInstantiate(void** executable, void* graph, void** node, char* log, size_t size);
int hipGraphLaunch(void* executable, void* stream);
int hipGraphExecDestroy(void* executable);
int hipGraphDestroy(void* graph);

enum { ROWS = 3, WIDTH = 2048, EXPERTS = 256, TO_DEVICE = 1, TO_HOST = 2 };

static void hip(int code, const char* what) {
  if (code == 0) return;
  fprintf(stderr, "%s: HIP error %d\n", what, code);
  exit(1);
}

static void netra(int status, const char* what) {
  if (status >= 0) return;
  fprintf(stderr, "%s: %s: %s\n", what, netra_status_name(status), netra_last_error());
  exit(1);
}

static unsigned long checksum(const void* device, size_t bytes) {
  unsigned char* host = malloc(bytes);
  unsigned long sum = 5381;
  hip(hipMemcpy(host, device, bytes, TO_HOST), "hipMemcpy");
  for (size_t i = 0; i < bytes; ++i) sum = sum * 33 + host[i];
  free(host);
  return sum;
}

/* A dense bf16 matrix. */
static netra_slot matrix(void* data, const int64_t* shape, const int64_t* strides,
                         uint64_t layout) {
  netra_slot slot;
  memset(&slot, 0, sizeof slot);
  slot.kind = NETRA_TENSOR;
  slot.value.tensor = (netra_tensor){(uint64_t)(size_t)data, (uint64_t)(2 * shape[0] * shape[1]),
                                     shape, strides, layout, 2, NETRA_BF16};
  return slot;
}

/* Small whole numbers as bf16: any order of the sum gives the same logits. */
static void fill(uint16_t* to, size_t count, int period) {
  for (size_t i = 0; i < count; ++i) {
    const float value = (float)((int)(i % (size_t)period) - period / 2);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    to[i] = (uint16_t)(bits >> 16);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s catalog.bin\n", argv[0]);
    return 2;
  }
  netra_bridge_options options = {sizeof options, argv[1], NULL, NULL, 0, 0};
  netra_bridge* bridge = NULL;
  netra(netra_bridge_open(&options, &bridge), "open");
  netra(netra_bridge_prepare(bridge, "router.gemv", NULL), "prepare");

  static uint16_t hidden[ROWS * WIDTH], weight[EXPERTS * WIDTH];
  fill(hidden, ROWS * WIDTH, 7);
  fill(weight, EXPERTS * WIDTH, 5);
  void *h = NULL, *w = NULL, *out = NULL, *stream = NULL;
  hip(hipMalloc(&h, sizeof hidden), "hipMalloc");
  hip(hipMalloc(&w, sizeof weight), "hipMalloc");
  hip(hipMalloc(&out, ROWS * EXPERTS * 2), "hipMalloc");
  hip(hipStreamCreateWithFlags(&stream, 1), "hipStreamCreate");
  hip(hipMemcpy(h, hidden, sizeof hidden, TO_DEVICE), "hipMemcpy");
  hip(hipMemcpy(w, weight, sizeof weight, TO_DEVICE), "hipMemcpy");

  /* Numbers of the op, of its arguments and of names: looked up once. */
  const netra_catalog* catalog = netra_bridge_catalog(bridge);
  const int op = netra_catalog_op(catalog, "router.gemv");
  netra(op, "the op");
  const uint64_t row_major = netra_catalog_name(catalog, "row_major");
  const int x = netra_catalog_slot(catalog, op, "hidden");
  netra_slot slots[3];
  const int64_t h_shape[] = {ROWS, WIDTH}, w_shape[] = {EXPERTS, WIDTH}, strides[] = {WIDTH, 1};
  const int64_t out_shape[] = {ROWS, EXPERTS}, out_strides[] = {EXPERTS, 1};
  slots[x] = matrix(h, h_shape, strides, row_major);
  slots[netra_catalog_slot(catalog, op, "weight")] = matrix(w, w_shape, strides, row_major);
  slots[netra_catalog_slot(catalog, op, "out")] = matrix(out, out_shape, out_strides, row_major);
  netra_call call = {sizeof call, op, 3, slots, 0, netra_catalog_name(catalog, "decode"), 0, 0};
  netra_decision decision = {sizeof decision, 0, 0, NULL};

  int status = netra_bridge_dispatch(bridge, &call, NULL, stream, &decision);
  netra(status, "dispatch");
  if (status == NETRA_DECLINED) {
    printf("declined: %s\n", decision.reason);
    return 3;
  }
  hip(hipStreamSynchronize(stream), "hipStreamSynchronize");
  printf("eager %lx\n", checksum(out, ROWS * EXPERTS * 2));

  /* The same into a graph, on changed inputs. */
  void *graph = NULL, *executable = NULL;
  hip(hipStreamBeginCapture(stream, 0), "hipStreamBeginCapture");
  netra(netra_bridge_dispatch(bridge, &call, NULL, stream, &decision), "dispatch in a capture");
  hip(hipStreamEndCapture(stream, &graph), "hipStreamEndCapture");
  hip(hipGraphInstantiate(&executable, graph, NULL, NULL, 0), "hipGraphInstantiate");
  fill(hidden, ROWS * WIDTH, 9);
  hip(hipMemcpy(h, hidden, sizeof hidden, TO_DEVICE), "hipMemcpy");
  hip(hipGraphLaunch(executable, stream), "hipGraphLaunch");
  hip(hipStreamSynchronize(stream), "hipStreamSynchronize");
  printf("replay %lx\n", checksum(out, ROWS * EXPERTS * 2));

  /* A call that no contract admits: the caller's own path runs, and the reason says why. */
  char text[256];
  slots[x].value.tensor.dtype = NETRA_F16;
  status = netra_bridge_dispatch(bridge, &call, NULL, stream, &decision);
  netra(netra_bridge_why(bridge, &call, text, sizeof text), "why");
  netra_stats stats = {sizeof stats, 0, 0, 0};
  netra(netra_bridge_stats(bridge, op, &stats), "stats");
  printf("%s; hits %llu, misses %llu\n", text, (unsigned long long)stats.hits,
         (unsigned long long)stats.misses);

  hip(hipGraphExecDestroy(executable), "hipGraphExecDestroy");
  hip(hipGraphDestroy(graph), "hipGraphDestroy");
  hip(hipStreamDestroy(stream), "hipStreamDestroy");
  hip(hipFree(h), "hipFree");
  hip(hipFree(w), "hipFree");
  hip(hipFree(out), "hipFree");
  netra(netra_bridge_close(bridge), "close");
  return status == NETRA_DECLINED ? 0 : 4;
}
