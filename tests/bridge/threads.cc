// Many threads dispatch a mix of calls on few streams; then everything is closed.
//
// usage: threads CATALOG THREADS COUNT.  Thread t uses stream t % 4.  Each dispatch is a hit or a
// miss by turns, and now and then the tactic is switched off and on and the statistics are read.
// Prints hits, misses and errors as the threads saw them, and as the bridge counted.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "netra_bridge.h"

extern "C" {
int hipMalloc(void** pointer, std::size_t bytes);
int hipFree(void* pointer);
int hipStreamCreateWithFlags(void** stream, unsigned flags);
extern unsigned long proxy_launches;
}

namespace {

std::atomic<unsigned long> hits{0}, misses{0}, errors{0};

netra_slot matrix(void* data, const std::int64_t* shape, const std::int64_t* strides,
                  std::uint64_t layout, int dtype = NETRA_BF16) {
  netra_slot slot{};
  slot.kind = NETRA_TENSOR;
  slot.value.tensor = {reinterpret_cast<std::uint64_t>(data),
                       static_cast<std::uint64_t>(2 * shape[0] * shape[1]), shape, strides, layout,
                       2, dtype};
  return slot;
}

int failed(netra_bridge* bridge, const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, netra_last_error());
  netra_bridge_close(bridge);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int count = std::atoi(argv[3]);
  netra_bridge_options options{};
  options.struct_size = sizeof options;
  options.catalog = argv[1];
  netra_bridge* bridge = nullptr;
  if (netra_bridge_open(&options, &bridge) < 0) return failed(nullptr, "open");
  if (netra_bridge_prepare(bridge, "router.gemv", nullptr) < 0) return failed(bridge, "prepare");
  void *hidden = nullptr, *weight = nullptr, *out = nullptr, *streams[4] = {};
  if (hipMalloc(&hidden, 4096) != 0 || hipMalloc(&weight, 1 << 20) != 0 ||
      hipMalloc(&out, 512) != 0)
    return failed(bridge, "hipMalloc");
  for (void*& stream : streams)
    if (hipStreamCreateWithFlags(&stream, 1) != 0) return failed(bridge, "hipStreamCreate");
  netra_catalog* catalog = netra_bridge_catalog(bridge);
  const int op = netra_catalog_op(catalog, "router.gemv");
  const std::uint64_t rows = netra_catalog_name(catalog, "row_major");
  const std::int64_t h_shape[] = {1, 2048}, w_shape[] = {256, 2048}, strides[] = {2048, 1};
  const std::int64_t out_shape[] = {1, 256}, out_strides[] = {256, 1};
  const int x = netra_catalog_slot(catalog, op, "hidden");

  auto work = [&](int thread) {
    netra_slot slots[3] = {};
    slots[netra_catalog_slot(catalog, op, "weight")] = matrix(weight, w_shape, strides, rows);
    slots[netra_catalog_slot(catalog, op, "out")] = matrix(out, out_shape, out_strides, rows);
    netra_call call{};
    call.struct_size = sizeof call;
    call.op = op;
    call.slot_count = 3;
    call.slots = slots;
    call.phase = netra_catalog_name(catalog, "decode");
    for (int i = thread; i < count; i += std::atoi(argv[2])) {
      slots[x] = matrix(hidden, h_shape, strides, rows, i % 3 == 2 ? NETRA_F16 : NETRA_BF16);
      netra_decision decision{};
      decision.struct_size = sizeof decision;
      switch (netra_bridge_dispatch(bridge, &call, nullptr, streams[thread % 4], &decision)) {
        case NETRA_OK: ++hits; break;
        case NETRA_DECLINED: ++misses; break;
        default: ++errors; break;
      }
      netra_stats stats{};
      stats.struct_size = sizeof stats;
      if (i % 100 == 0) netra_bridge_stats(bridge, op, &stats);
      if (i % 1000 == 7) netra_catalog_disable(catalog, "router_gemv_bf16_n512_k4096", i % 2000 == 7);
      if (i % 1000 == 9) netra_bridge_prepare(bridge, "router.gemv", nullptr);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < std::atoi(argv[2]); ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();

  netra_stats stats{};
  stats.struct_size = sizeof stats;
  netra_bridge_stats(bridge, op, &stats);
  std::printf("hits %lu misses %lu errors %lu counted %llu %llu %llu kernels %lu\n", hits.load(),
              misses.load(), errors.load(), static_cast<unsigned long long>(stats.hits),
              static_cast<unsigned long long>(stats.misses),
              static_cast<unsigned long long>(stats.errors), proxy_launches);
  netra_miss miss{};
  miss.struct_size = sizeof miss;
  for (int i = 0; netra_bridge_miss(bridge, op, i, &miss) == NETRA_OK; ++i)
    std::printf("miss %s %llu\n", miss.reason, static_cast<unsigned long long>(miss.count));
  for (void* buffer : {hidden, weight, out}) hipFree(buffer);
  if (netra_bridge_close(bridge) < 0) return failed(nullptr, "close");
  return 0;
}
