/* Decides and plans 10,000 calls that are taken and 10,000 that are not, and prints how many of
 * each there were, and how often memory was allocated while opening and while deciding. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "netra_bridge.h"

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);

static long allocations;

void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, netra_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  netra_catalog* catalog = NULL;
  const long before = allocations;
  if (netra_catalog_open(argv[1], 1, &catalog) != NETRA_OK) return failed("open");
  const long opening = allocations - before;

  const int op = netra_catalog_op(catalog, "toy.op");
  if (op < 0) return failed("op");
  const int64_t shape[2] = {16, 256}, strides[2] = {256, 1}, row[1] = {16}, one[1] = {1};
  netra_slot slots[7] = {{0}};
  netra_slot* slot = &slots[netra_catalog_slot(catalog, op, "x")];
  slot->kind = NETRA_TENSOR;
  slot->value.tensor = (netra_tensor){0x1000, 16384, shape, strides, 0, 2, NETRA_F32};
  slot = &slots[netra_catalog_slot(catalog, op, "out")];
  slot->kind = NETRA_TENSOR;
  slot->value.tensor = (netra_tensor){0x10000, 64, row, one, 0, 1, NETRA_F32};
  slot = &slots[netra_catalog_slot(catalog, op, "eps")];
  slot->kind = NETRA_REAL;
  slot->value.f = 1e-6;
  slot = &slots[netra_catalog_slot(catalog, op, "a")];
  slot->kind = NETRA_SIGNED;
  slot->value.i = 7;
  slot = &slots[netra_catalog_slot(catalog, op, "b")];
  slot->kind = NETRA_SIGNED;
  slot->value.i = -3;
  slot = &slots[netra_catalog_slot(catalog, op, "k")];
  slot->kind = NETRA_UNSIGNED;
  slot->value.u = 4;
  netra_call call = {0};
  call.struct_size = sizeof call;
  call.op = op;
  call.slot_count = 7;
  call.slots = slots;
  call.arch = netra_catalog_name(catalog, "gfx950");
  call.graph = netra_catalog_name(catalog, "capture");
  call.cu_count = 256;

  const uint64_t decode = netra_catalog_name(catalog, "decode");
  const uint64_t prefill = netra_catalog_name(catalog, "prefill");
  int taken = 0, missed = 0;
  const long start = allocations;
  for (int i = 0; i < 20000; ++i) {
    call.phase = i % 2 == 0 ? decode : prefill;
    netra_decision decision = {0};
    decision.struct_size = sizeof decision;
    const int status = netra_catalog_decide(catalog, &call, &decision);
    if (status == NETRA_DECLINED) {
      ++missed;
      continue;
    }
    if (status != NETRA_OK) return failed("decide");
    uint64_t bytes = 0, kernarg[8];
    if (netra_catalog_workspace(catalog, decision.tactic, &call, &bytes) != NETRA_OK)
      return failed("workspace");
    netra_plan plan = {0};
    plan.struct_size = sizeof plan;
    if (netra_catalog_plan(catalog, decision.tactic, 0, &call, 0x2000, &plan, kernarg,
                           sizeof kernarg) != NETRA_OK)
      return failed("plan");
    if (bytes == 28 && kernarg[0] == 0x2000 && plan.block[0] == 64 && plan.kernarg_size == 24)
      ++taken;
  }
  const long deciding = allocations - start;
  netra_catalog_close(catalog);
  printf("%d %d %ld %ld\n", taken, missed, opening, deciding);
  return 0;
}
