// A catalog on a device: prepare loads what tactics launch, dispatch launches it.
//
// Everything that a dispatch touches is made by open and prepare and is only read afterwards, but
// for counters; so dispatch takes no lock, and threads may dispatch while another one prepares.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fnmatch.h>

#include "abi.h"
#include "error.h"

namespace nb = netra::bridge;
using nb::fail;
using nb::give;
using nb::guarded;

namespace {

constexpr size_t kMostKernarg = 4096;  // of all launches of a tactic together; HIP's limit for one
constexpr size_t kMostLaunches = 16;

size_t padded(size_t kernarg) { return (kernarg + 15) / 16 * 16; }

constexpr size_t kReasons = 64;         // different reasons for which an op was declined

// Counts misses of an op by (tactic, reason). Reasons are texts of the catalog or of this file, so
// they are told apart by address. Entries are only added.
struct Misses {
  struct Entry {
    std::atomic<const char*> reason{nullptr};   // written last: an entry without one is free
    std::atomic<int32_t> tactic{0};
    std::atomic<uint64_t> count{0};
    std::atomic<bool> taken{false};
  };
  Entry entries[kReasons];

  void add(int32_t tactic, const char* reason) {
    for (Entry& entry : entries) {
      const char* known = entry.reason.load(std::memory_order_acquire);
      if (known == nullptr) {
        if (entry.taken.exchange(true)) continue;   // another thread is making it
        entry.tactic.store(tactic, std::memory_order_relaxed);
        entry.reason.store(reason, std::memory_order_release);
        known = reason;
      } else if (known != reason || entry.tactic.load(std::memory_order_relaxed) != tactic) {
        continue;
      }
      if (entry.tactic.load(std::memory_order_relaxed) != tactic) continue;
      entry.count.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
};

struct Op {
  std::atomic<uint64_t> hits{0}, misses{0}, errors{0};
  bool required = false;
  Misses by_reason;
};

struct Tactic {
  netra_tactic_info info{};
  bool here = false;                 // for this device's arch
  std::atomic<bool> ready{false};    // every kernel is loaded
  std::atomic<bool> failed{false};
  std::vector<const netra_kernel*> kernels;   // of its launches; complete once `ready`
};

}  // namespace

struct netra_bridge {
  netra_context* context = nullptr;
  netra_catalog* catalog = nullptr;
  std::string objects;
  uint64_t arch = 0, eager = 0, capture = 0;   // names
  netra_device_info device{};
  std::vector<std::unique_ptr<Op>> ops;
  std::vector<std::unique_ptr<Tactic>> tactics;
  std::mutex preparing;
  std::vector<const netra_kernel*> loaded;   // by kernel of the catalog
};

namespace {

bool matches(const char* pattern, const char* id) {
  const char* slash = std::strrchr(id, '/');
  const bool whole = std::strchr(pattern, '/') != nullptr;
  return fnmatch(pattern, whole || slash == nullptr ? id : slash + 1, FNM_NOESCAPE) == 0;
}

std::string hex(const uint8_t* bytes, size_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

int refuse_override(const netra_device_info& device) {
  const char* forced = std::getenv("HSA_OVERRIDE_GFX_VERSION");
  const char* allowed = std::getenv("NETRA_ALLOW_GFX_OVERRIDE");
  if (forced == nullptr || *forced == 0) return NETRA_OK;
  if (allowed != nullptr && std::strcmp(allowed, device.arch) == 0) return NETRA_OK;
  return fail(NETRA_ERROR_DEVICE,
              "HSA_OVERRIDE_GFX_VERSION=%s makes device %d claim to be %s, so its real target is "
              "unknown. Unset it, or set NETRA_ALLOW_GFX_OVERRIDE=%s to run %s kernels all the same",
              forced, device.device, device.arch, device.arch, device.arch);
}

int fill_tables(netra_bridge* bridge) {
  const netra_catalog* catalog = bridge->catalog;
  for (int i = 0; i < netra_catalog_op_count(catalog); ++i)
    bridge->ops.push_back(std::make_unique<Op>());
  for (int i = 0; i < netra_catalog_tactic_count(catalog); ++i) {
    auto tactic = std::make_unique<Tactic>();
    tactic->info.struct_size = sizeof tactic->info;
    if (const int status = netra_catalog_describe(catalog, i, &tactic->info)) return status;
    tactic->here = std::strcmp(tactic->info.arch, bridge->device.arch) == 0;
    bridge->tactics.push_back(std::move(tactic));
  }
  bridge->loaded.assign(static_cast<size_t>(netra_catalog_kernel_count(catalog)), nullptr);
  return NETRA_OK;
}

// $NETRA_REQUIRE holds names of ops and globs of tactics; an op is required when one of its is.
void mark_required(netra_bridge* bridge) {
  const char* value = std::getenv("NETRA_REQUIRE");
  const std::string patterns = value != nullptr ? value : "";
  static constexpr char kBetween[] = ", \t\n";
  for (size_t at = 0; (at = patterns.find_first_not_of(kBetween, at)) != std::string::npos;) {
    const size_t end = std::min(patterns.find_first_of(kBetween, at), patterns.size());
    const std::string pattern = patterns.substr(at, end - at);
    for (const auto& tactic : bridge->tactics) {
      const char* op = netra_catalog_op_name(bridge->catalog, tactic->info.op);
      if (fnmatch(pattern.c_str(), op, FNM_NOESCAPE) == 0 ||
          matches(pattern.c_str(), tactic->info.id))
        bridge->ops[static_cast<size_t>(tactic->info.op)]->required = true;
    }
    at = end;
  }
}

int load_kernel(netra_bridge* bridge, int number, void* stream, const netra_kernel** kernel) {
  const auto at = static_cast<size_t>(number);
  if (bridge->loaded[at] != nullptr) {
    *kernel = bridge->loaded[at];
    return NETRA_OK;
  }
  netra_catalog_kernel_info info{};
  info.struct_size = sizeof info;
  if (const int status = netra_catalog_kernel(bridge->catalog, number, &info)) return status;
  if (info.kernarg_size > kMostKernarg)
    return fail(NETRA_ERROR_KERNARG, "kernel %s takes %u bytes of arguments, HIP passes at most %zu",
                info.name, info.kernarg_size, kMostKernarg);
  const std::string path = bridge->objects + "/" + info.arch + "/" + info.name + ".co";
  const std::string digest = hex(info.co_sha256, sizeof info.co_sha256);
  netra_load_request request{};
  request.struct_size = sizeof request;
  request.path = path.c_str();
  request.sha256 = digest.c_str();
  request.arch = info.arch;
  request.stream = stream;
  netra_object* object = nullptr;
  if (const int status = netra_load(bridge->context, &request, &object)) return status;
  const int status =
      netra_find_kernel(object, info.name, info.kernarg_size, nullptr, 0, kernel);
  if (status != NETRA_OK) {
    netra_unload(object);
    return status;
  }
  bridge->loaded[at] = *kernel;
  return NETRA_OK;
}

// Failures that say nothing about the files: the tactic is out, the others go on.
bool environmental(int status) {
  return status == NETRA_ERROR_HIP || status == NETRA_ERROR_MEMORY;
}

int prepare_tactic(netra_bridge* bridge, Tactic* tactic, int number, void* stream) {
  std::vector<const netra_kernel*> kernels;
  size_t bytes = 0;
  for (uint32_t launch = 0; launch < tactic->info.launches; ++launch) {
    const netra_kernel* kernel = nullptr;
    const int which = netra_catalog_launch_kernel(bridge->catalog, number, static_cast<int>(launch));
    const int status = load_kernel(bridge, which, stream, &kernel);
    if (environmental(status)) {
      if (!tactic->failed.exchange(true))
        std::fprintf(stderr, "netra: %s is out for this process: %s\n", tactic->info.id,
                     netra_last_error());
      return NETRA_DECLINED;
    }
    if (status != NETRA_OK) return status;
    kernels.push_back(kernel);
    netra_kernel_info info{};
    info.struct_size = sizeof info;
    if (const int failed = netra_kernel_describe(kernel, &info)) return failed;
    bytes += padded(info.kernarg_bytes);
  }
  if (kernels.size() > kMostLaunches || bytes > kMostKernarg)
    return fail(NETRA_ERROR_KERNARG,
                "%s: %zu launches with %zu bytes of arguments; the bridge launches at most %zu with "
                "%zu bytes",
                tactic->info.id, kernels.size(), bytes, kMostLaunches, kMostKernarg);
  tactic->kernels = std::move(kernels);
  tactic->ready.store(true, std::memory_order_release);
  return NETRA_OK;
}

// The call with what the device knows filled in.
int complete(netra_bridge* bridge, const netra_call* call, void* stream, bool ask,
             netra_call* out) {
  if (bridge == nullptr || call == nullptr || call->struct_size < sizeof(netra_call))
    return fail(NETRA_ERROR_ARGUMENT,
                "the bridge or the call is null, or the call's struct_size is not set");
  *out = *call;
  if (out->arch == 0) out->arch = bridge->arch;
  if (out->cu_count == 0) out->cu_count = bridge->device.cu_count;
  if (out->graph == 0) {
    int status = NETRA_CAPTURE_NONE;
    if (ask)
      if (const int failed = netra_capture_status(bridge->context, stream, &status)) return failed;
    out->graph = status == NETRA_CAPTURE_NONE ? bridge->eager : bridge->capture;
  }
  return NETRA_OK;
}

// For questions without a stream: `decide` with the call as eager and, when the call leaves the mode
// open and that declines, as captured.
template <typename Decide>
int in_either_mode(netra_bridge* bridge, const netra_call* call, netra_call* whole, Decide decide) {
  if (const int status = complete(bridge, call, nullptr, false, whole)) return status;
  int status = decide();
  if (status != NETRA_DECLINED || call->graph != 0) return status;
  whole->graph = bridge->capture;
  status = decide();
  if (status != NETRA_DECLINED) return status;
  whole->graph = bridge->eager;   // the reason that counts
  return decide();
}

// NETRA_OK with a tactic that is ready to launch, NETRA_DECLINED with the reason, or an error.
int choose(netra_bridge* bridge, const netra_call& call, netra_decision* decision) {
  *decision = {sizeof *decision, -1, -1, ""};
  const int status = netra_catalog_decide(bridge->catalog, &call, decision);
  if (status != NETRA_OK) return status;
  const Tactic& tactic = *bridge->tactics[static_cast<size_t>(decision->tactic)];
  if (tactic.ready.load(std::memory_order_acquire)) return NETRA_OK;
  decision->reason = tactic.failed.load(std::memory_order_relaxed) ? "failed"
                     : tactic.here                                 ? "not_prepared"
                                                                   : "arch";
  return NETRA_DECLINED;
}

int use_workspace(const netra_bridge* bridge, const netra_decision& decision,
                  const netra_call& call, netra_workspace* workspace, void* stream,
                  uint64_t* address) {
  const Tactic& tactic = *bridge->tactics[static_cast<size_t>(decision.tactic)];
  uint64_t bytes = 0;
  *address = 0;
  if (const int status =
          netra_catalog_workspace(bridge->catalog, decision.tactic, &call, &bytes))
    return status;
  if (bytes == 0) return NETRA_OK;
  if (workspace == nullptr || workspace->struct_size < sizeof(netra_workspace) ||
      workspace->data == 0 || workspace->bytes < bytes)
    return fail(NETRA_ERROR_ARGUMENT, "%s needs a workspace of %llu bytes and was given %llu",
                tactic.info.id, static_cast<unsigned long long>(bytes),
                workspace == nullptr || workspace->data == 0
                    ? 0ULL
                    : static_cast<unsigned long long>(workspace->bytes));
  if (workspace->bound != 0 && workspace->stream != stream)
    return fail(NETRA_ERROR_ARGUMENT,
                "%s: its workspace at %#llx belongs to stream %p and was given with stream %p. Each "
                "stream needs its own",
                tactic.info.id, static_cast<unsigned long long>(workspace->data),
                workspace->stream, stream);
  workspace->stream = stream;
  workspace->bound = 1;
  *address = workspace->data;
  return NETRA_OK;
}

// Plans every launch before the first one goes: a call is launched whole, or an error of its plan
// leaves nothing behind.
int launch_all(const netra_bridge* bridge, const netra_decision& decision, const netra_call& call,
               uint64_t workspace, void* stream) {
  const Tactic& tactic = *bridge->tactics[static_cast<size_t>(decision.tactic)];
  alignas(16) uint8_t kernarg[kMostKernarg];
  netra_plan plans[kMostLaunches];
  size_t used = 0;
  for (uint32_t i = 0; i < tactic.info.launches; ++i) {
    plans[i] = {};
    plans[i].struct_size = sizeof plans[i];
    if (const int status =
            netra_catalog_plan(bridge->catalog, decision.tactic, static_cast<int>(i), &call,
                               workspace, &plans[i], kernarg + used, sizeof kernarg - used))
      return status;
    used += padded(plans[i].kernarg_size);
  }
  used = 0;
  for (uint32_t i = 0; i < tactic.info.launches; ++i) {
    const netra_plan& plan = plans[i];
    if (const int status = netra_launch(tactic.kernels[i], plan.grid, plan.block,
                                        plan.dynamic_lds, kernarg + used, plan.kernarg_size,
                                        stream))
      return status;
    used += padded(plan.kernarg_size);
  }
  return NETRA_OK;
}

int declined(netra_bridge* bridge, const netra_call& call, const netra_decision& decision) {
  Op& op = *bridge->ops[static_cast<size_t>(call.op)];
  op.misses.fetch_add(1, std::memory_order_relaxed);
  op.by_reason.add(decision.tactic, decision.reason);
  if (!op.required) return NETRA_DECLINED;
  const char* id =
      decision.tactic >= 0 ? bridge->tactics[static_cast<size_t>(decision.tactic)]->info.id : "-";
  return fail(NETRA_ERROR_REQUIRED, "no tactic takes this call of %s, and NETRA_REQUIRE says that "
              "one must: %s declines because of %s",
              netra_catalog_op_name(bridge->catalog, call.op), id, decision.reason);
}

int dispatch(netra_bridge* bridge, const netra_call& call, netra_workspace* workspace, void* stream,
             netra_decision* decision) {
  const int chosen = choose(bridge, call, decision);
  if (chosen == NETRA_DECLINED) return declined(bridge, call, *decision);
  if (chosen != NETRA_OK) return chosen;
  uint64_t address = 0;
  if (const int status =
          use_workspace(bridge, *decision, call, workspace, stream, &address))
    return status;
  if (const int status = launch_all(bridge, *decision, call, address, stream)) return status;
  bridge->ops[static_cast<size_t>(call.op)]->hits.fetch_add(1, std::memory_order_relaxed);
  return NETRA_OK;
}

const Op* op_of(const netra_bridge* bridge, int op) {
  if (bridge == nullptr || op < 0 || static_cast<size_t>(op) >= bridge->ops.size()) return nullptr;
  return bridge->ops[static_cast<size_t>(op)].get();
}

}  // namespace

extern "C" {

int netra_bridge_open(const netra_bridge_options* options, netra_bridge** bridge) {
  if (options == nullptr || bridge == nullptr || options->catalog == nullptr ||
      options->struct_size < sizeof(netra_bridge_options))
    return fail(NETRA_ERROR_ARGUMENT,
                "netra_bridge_open: an argument or the catalog's path is null, or struct_size is "
                "not set");
  return guarded([&]() -> int {
    auto made = std::make_unique<netra_bridge>();
    if (const int status =
            netra_open(options->hip_library, options->device, &made->context))
      return status;
    made->device.struct_size = sizeof made->device;
    int status = netra_device(made->context, &made->device);
    if (status == NETRA_OK) status = refuse_override(made->device);
    if (status == NETRA_OK)
      status = netra_catalog_open(options->catalog, made->device.simulated, &made->catalog);
    if (status == NETRA_OK) status = fill_tables(made.get());
    if (status != NETRA_OK) {
      netra_catalog_close(made->catalog);
      netra_close(made->context);
      return status;
    }
    const std::string catalog = options->catalog;
    const size_t slash = catalog.rfind('/');
    made->objects = options->objects != nullptr       ? options->objects
                    : slash != std::string::npos      ? catalog.substr(0, slash)
                                                      : ".";
    made->arch = netra_catalog_name(made->catalog, made->device.arch);
    made->eager = netra_catalog_name(made->catalog, "eager");
    made->capture = netra_catalog_name(made->catalog, "capture");
    mark_required(made.get());
    *bridge = made.release();
    return NETRA_OK;
  });
}

int netra_bridge_close(netra_bridge* bridge) {
  if (bridge == nullptr) return NETRA_OK;
  netra_catalog_close(bridge->catalog);
  const int status = netra_close(bridge->context);
  delete bridge;
  return status;
}

netra_catalog* netra_bridge_catalog(const netra_bridge* bridge) {
  return bridge != nullptr ? bridge->catalog : nullptr;
}

netra_context* netra_bridge_context(const netra_bridge* bridge) {
  return bridge != nullptr ? bridge->context : nullptr;
}

int netra_bridge_prepare(netra_bridge* bridge, const char* pattern, void* stream) {
  if (bridge == nullptr) return fail(NETRA_ERROR_ARGUMENT, "netra_bridge_prepare: bridge is null");
  return guarded([&]() -> int {
    const std::lock_guard<std::mutex> lock(bridge->preparing);
    bool named = false, out = false;
    for (size_t i = 0; i < bridge->tactics.size(); ++i) {
      Tactic* tactic = bridge->tactics[i].get();
      const char* op = netra_catalog_op_name(bridge->catalog, tactic->info.op);
      if (pattern != nullptr && std::strcmp(pattern, op) != 0 &&
          !matches(pattern, tactic->info.id))
        continue;
      named = true;
      if (!tactic->here || tactic->info.admitted == 0 || tactic->ready) continue;
      if (tactic->failed) {
        out = true;
        continue;
      }
      const int status = prepare_tactic(bridge, tactic, static_cast<int>(i), stream);
      if (status < 0) return status;
      out = out || status == NETRA_DECLINED;
    }
    if (!named && pattern != nullptr)
      return fail(NETRA_ERROR_ARGUMENT, "'%s' names neither a tactic nor an op of the catalog",
                  pattern);
    return out ? NETRA_DECLINED : NETRA_OK;
  });
}

int netra_bridge_workspace_bytes(netra_bridge* bridge, const netra_call* call, uint64_t* bytes) {
  if (bytes == nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "netra_bridge_workspace_bytes: bytes is null");
  netra_call whole{};
  netra_decision decision{};
  decision.struct_size = sizeof decision;
  const int status = in_either_mode(bridge, call, &whole, [&] {
    return netra_catalog_decide(bridge->catalog, &whole, &decision);
  });
  if (status != NETRA_OK) return status;
  return netra_catalog_workspace(bridge->catalog, decision.tactic, &whole, bytes);
}

int netra_bridge_dispatch(netra_bridge* bridge, const netra_call* call,
                          netra_workspace* workspace, void* stream, netra_decision* decision) {
  netra_call whole{};
  if (const int status = complete(bridge, call, stream, true, &whole)) return status;
  netra_decision found{};
  int status = dispatch(bridge, whole, workspace, stream, &found);
  if (status < 0 && op_of(bridge, whole.op) != nullptr)
    bridge->ops[static_cast<size_t>(whole.op)]->errors.fetch_add(1, std::memory_order_relaxed);
  if (decision != nullptr)
    if (const int given = give(found, decision, "netra_bridge_dispatch")) status = given;
  return status;
}

int netra_bridge_why(netra_bridge* bridge, const netra_call* call, char* text, size_t capacity) {
  if (text == nullptr || capacity == 0)
    return fail(NETRA_ERROR_ARGUMENT, "netra_bridge_why: there is no room for the text");
  netra_call whole{};
  netra_decision decision{};
  const int status = in_either_mode(bridge, call, &whole,
                                    [&] { return choose(bridge, whole, &decision); });
  if (status < 0) return status;
  const char* id = decision.tactic >= 0
                       ? bridge->tactics[static_cast<size_t>(decision.tactic)]->info.id
                       : "no tactic";
  if (status == NETRA_OK)
    std::snprintf(text, capacity, "%s takes the call", id);
  else if (std::strcmp(decision.reason, "not_prepared") == 0)
    std::snprintf(text, capacity, "%s takes the call, but is not prepared: call "
                  "netra_bridge_prepare outside a capture", id);
  else
    std::snprintf(text, capacity, "%s declines: %s", id, decision.reason);
  return status;
}

int netra_bridge_stats(const netra_bridge* bridge, int op, netra_stats* stats) {
  const Op* found = op_of(bridge, op);
  if (found == nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "netra_bridge_stats: the catalog has no op %d", op);
  netra_stats source{};
  source.hits = found->hits.load(std::memory_order_relaxed);
  source.misses = found->misses.load(std::memory_order_relaxed);
  source.errors = found->errors.load(std::memory_order_relaxed);
  return give(source, stats, "netra_bridge_stats");
}

int netra_bridge_miss(const netra_bridge* bridge, int op, int index, netra_miss* miss) {
  const Op* found = op_of(bridge, op);
  if (found == nullptr || index < 0)
    return fail(NETRA_ERROR_ARGUMENT, "netra_bridge_miss: the catalog has no op %d", op);
  for (const Misses::Entry& entry : found->by_reason.entries) {
    const char* reason = entry.reason.load(std::memory_order_acquire);
    if (reason == nullptr || index-- != 0) continue;
    netra_miss source{};
    source.tactic = entry.tactic.load(std::memory_order_relaxed);
    source.reason = reason;
    source.count = entry.count.load(std::memory_order_relaxed);
    return give(source, miss, "netra_bridge_miss");
  }
  return NETRA_DECLINED;
}

}  // extern "C"
