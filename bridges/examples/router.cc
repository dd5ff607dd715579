// A tactic with a workspace, from C++: the small-M router, whose blocks meet at a ticket counter.
//
// Build and run as router_gemv.c says, with a C++ compiler. Prints the chosen experts of token 0.
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "netra_bridge.h"

extern "C" {
int hipMalloc(void** pointer, std::size_t bytes);
int hipFree(void* pointer);
int hipMemset(void* to, int byte, std::size_t bytes);
int hipMemcpy(void* to, const void* from, std::size_t bytes, int kind);
int hipDeviceSynchronize();
}

namespace {

void check(int code, const char* what) {
  if (code != 0) throw std::runtime_error(std::string(what) + ": HIP error " + std::to_string(code));
}

int netra(int status, const char* what) {
  if (status < 0)
    throw std::runtime_error(std::string(what) + ": " + netra_status_name(status) + ": " +
                             netra_last_error());
  return status;
}

struct Free {
  void operator()(void* pointer) const { hipFree(pointer); }
};
using Buffer = std::unique_ptr<void, Free>;

Buffer device(std::size_t bytes) {
  void* pointer = nullptr;
  check(hipMalloc(&pointer, bytes), "hipMalloc");
  return Buffer(pointer);
}

struct Close {
  void operator()(netra_bridge* bridge) const { netra_bridge_close(bridge); }
};

// A dense tensor; shape and strides live as long as it does.
struct Dense {
  std::vector<std::int64_t> shape, strides;
  netra_slot slot{};
  Dense(const Buffer& data, int dtype, std::uint64_t element, std::vector<std::int64_t> dims,
        std::uint64_t layout)
      : shape(std::move(dims)), strides(shape.size(), 1) {
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    const auto bytes = static_cast<std::uint64_t>(strides[0] * shape[0]) * element;
    slot.kind = NETRA_TENSOR;
    slot.value.tensor = {reinterpret_cast<std::uint64_t>(data.get()), bytes, shape.data(),
                         strides.data(), layout, static_cast<std::int32_t>(shape.size()), dtype};
  }
};

int run(const char* path) {
  constexpr int kTokens = 3, kWidth = 4096, kExperts = 512, kChosen = 11;
  netra_bridge_options options{};
  options.struct_size = sizeof options;
  options.catalog = path;
  netra_bridge* opened = nullptr;
  netra(netra_bridge_open(&options, &opened), "open");
  const std::unique_ptr<netra_bridge, Close> bridge(opened);
  netra(netra_bridge_prepare(bridge.get(), "router.smallm", nullptr), "prepare");

  // Expert e wants the elements 8 e .. 8 e + 7: token t likes experts t, t + 1, ... in this order.
  std::vector<std::uint16_t> x(kTokens * kWidth), gate(kExperts * kWidth), shared(kWidth);
  const std::uint16_t steps[] = {0x4120, 0x4110, 0x4100, 0x40e0, 0x40c0, 0x40a0, 0x4080, 0x4040,
                                 0x4000, 0x3f80};   // 10, 9, ... 1 as bf16
  for (int t = 0; t < kTokens; ++t)
    for (int i = 0; i < 10; ++i) x[static_cast<std::size_t>(t * kWidth + 8 * (t + i))] = steps[i];
  for (int e = 0; e < kExperts; ++e)
    gate[static_cast<std::size_t>(e * kWidth + 8 * e)] = 0x3f80;
  const Buffer in = device(2 * x.size()), w = device(2 * gate.size()), s = device(2 * shared.size());
  const Buffer ids = device(4 * kTokens * kChosen), weights = device(4 * kTokens * kChosen);
  check(hipMemcpy(in.get(), x.data(), 2 * x.size(), 1), "hipMemcpy");
  check(hipMemcpy(w.get(), gate.data(), 2 * gate.size(), 1), "hipMemcpy");
  check(hipMemcpy(s.get(), shared.data(), 2 * shared.size(), 1), "hipMemcpy");

  const netra_catalog* catalog = netra_bridge_catalog(bridge.get());
  const int op = netra(netra_catalog_op(catalog, "router.smallm"), "the op");
  const std::uint64_t rows = netra_catalog_name(catalog, "row_major");
  const Dense a(in, NETRA_BF16, 2, {kTokens, kWidth}, rows),
      b(w, NETRA_BF16, 2, {kExperts, kWidth}, rows), c(s, NETRA_BF16, 2, {1, kWidth}, rows),
      d(ids, NETRA_I32, 4, {kTokens, kChosen}, rows),
      e(weights, NETRA_F32, 4, {kTokens, kChosen}, rows);
  auto number = [](std::int64_t value) {
    netra_slot slot{};
    slot.kind = NETRA_SIGNED;
    slot.value.i = value;
    return slot;
  };
  const std::map<std::string, netra_slot> named = {
      {"x", a.slot}, {"gate", b.slot}, {"shared_gate", c.slot}, {"out_ids", d.slot},
      {"out_weights", e.slot}, {"top_k", number(10)}, {"renormalize", number(1)},
      {"fused_shared_experts", number(1)}, {"ep_size", number(1)}, {"expert_remap", number(0)},
      {"simulated_routing", number(0)}, {"runner", number(0)}};
  std::vector<netra_slot> slots(named.size() + 1);   // `scale` is absent: it has a default
  for (const auto& [name, slot] : named)
    slots[static_cast<std::size_t>(netra(netra_catalog_slot(catalog, op, name.c_str()), "slot"))] =
        slot;
  netra_call call{};
  call.struct_size = sizeof call;
  call.op = op;
  call.slot_count = static_cast<std::uint32_t>(slots.size());
  call.slots = slots.data();
  call.phase = netra_catalog_name(catalog, "decode");

  // The workspace is ours, one for each stream, and zeroed once: the kernel leaves its counter at 0.
  std::uint64_t bytes = 0;
  netra(netra_bridge_workspace_bytes(bridge.get(), &call, &bytes), "workspace");
  const Buffer memory = device(bytes);
  check(hipMemset(memory.get(), 0, bytes), "hipMemset");
  netra_workspace workspace{};
  workspace.struct_size = sizeof workspace;
  workspace.data = reinterpret_cast<std::uint64_t>(memory.get());
  workspace.bytes = bytes;

  for (int round = 0; round < 2; ++round) {
    netra_decision decision{};
    decision.struct_size = sizeof decision;
    const int status =
        netra(netra_bridge_dispatch(bridge.get(), &call, &workspace, nullptr, &decision), "dispatch");
    if (status == NETRA_DECLINED) throw std::runtime_error(std::string("declined: ") + decision.reason);
    check(hipDeviceSynchronize(), "hipDeviceSynchronize");
  }
  std::vector<std::int32_t> chosen(kTokens * kChosen);
  check(hipMemcpy(chosen.data(), ids.get(), 4 * chosen.size(), 2), "hipMemcpy");
  for (int i = 0; i < kChosen; ++i) std::printf("%d%s", chosen[static_cast<std::size_t>(i)],
                                                i + 1 < kChosen ? " " : "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2) return run(argv[1]);
    std::fprintf(stderr, "usage: %s catalog.bin\n", argv[0]);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
