// Judging one call by the compiled catalog, and planning what it launches: the C ABI of catalog.bin.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include <fnmatch.h>

#include "abi.h"
#include "catalog.h"
#include "error.h"
#include "file.h"

namespace nb = netra::bridge;
using nb::fail;
using nb::give;
using nb::Int128;
using nb::Outcome;

struct netra_catalog {
  nb::Catalog tables;
  std::vector<std::atomic<uint8_t>> state;  // of each tactic, a State
};

namespace {

const char* const kMaturity[] = {"experiment", "simulated", "verified",
                                 "accepted",   "rejected",  "quarantined"};
enum : uint32_t { kAccepted = 3, kRejected = 4, kQuarantined = 5 };

constexpr int kMostThreads = 1024;

// Whether a tactic may take calls. One that is off could, and is named when it would have.
enum State : uint8_t { kNever, kOn, kOff };

// ---- admission ------------------------------------------------------------------------------

// Whether a glob names a tactic.
bool matches(const char* pattern, const char* id) {
  const char* slash = std::strrchr(id, '/');
  const char* stem = slash != nullptr ? slash + 1 : id;
  const bool whole = std::strchr(pattern, '/') != nullptr;
  return fnmatch(pattern, whole ? id : stem, FNM_NOESCAPE) == 0;
}

// Whether one of the globs of a variable, with commas or blanks between them, names a tactic.
bool named(const char* id, const char* variable) {
  const char* value = std::getenv(variable);
  const std::string patterns = value != nullptr ? value : "";
  static constexpr char kBetween[] = ", \t\n\r\f\v";
  for (size_t at = 0; (at = patterns.find_first_not_of(kBetween, at)) != std::string::npos;) {
    const size_t end = std::min(patterns.find_first_of(kBetween, at), patterns.size());
    const std::string pattern = patterns.substr(at, end - at);
    if (matches(pattern.c_str(), id)) return true;
    at = end;
  }
  return false;
}

State admits(const nb::Catalog& tables, const nb::TacticRecord& tactic, bool simulated) {
  const char* id = tables.text(tactic.id);
  if (tactic.maturity == kRejected || tactic.maturity == kQuarantined) return kNever;
  if (*tables.text(tactic.hold) != 0 && !named(id, "NETRA_ENABLE")) return kNever;
  if (!simulated && tactic.maturity != kAccepted && !named(id, "NETRA_ADMIT")) return kNever;
  return named(id, "NETRA_DISABLE") ? kOff : kOn;
}

// ---- a call ---------------------------------------------------------------------------------

// What no caller may pass. Whether the arguments fit the op is another question.
int check_call(const netra_catalog* catalog, const netra_call* call, const char* function) {
  if (catalog == nullptr || call == nullptr || call->struct_size < sizeof(netra_call))
    return fail(NETRA_ERROR_ARGUMENT,
                "%s: the catalog or the call is null, or its struct_size is not set", function);
  const nb::Catalog& tables = catalog->tables;
  if (call->op < 0 || static_cast<size_t>(call->op) >= tables.ops.size())
    return fail(NETRA_ERROR_ARGUMENT, "%s: the catalog has no op %d", function, call->op);
  const nb::OpRecord& op = tables.ops[static_cast<size_t>(call->op)];
  if (call->slot_count != op.arg_count || (call->slots == nullptr && op.arg_count != 0))
    return fail(NETRA_ERROR_ARGUMENT, "%s: the call has %u slots, op %s has %u", function,
                call->slots == nullptr ? 0 : call->slot_count, tables.text(op.name), op.arg_count);
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    const netra_slot& slot = call->slots[i];
    const char* name = tables.text(tables.op_args[op.args + i].name);
    if (slot.kind < NETRA_ABSENT || slot.kind > NETRA_REAL)
      return fail(NETRA_ERROR_ARGUMENT, "%s: %s: %d is no netra_slot_kind", function, name,
                  slot.kind);
    if (slot.kind != NETRA_TENSOR) continue;
    const netra_tensor& tensor = slot.value.tensor;
    if (nb::dtype_bytes(tensor.dtype) == 0)
      return fail(NETRA_ERROR_ARGUMENT, "%s: %s: %d is no netra_dtype", function, name,
                  tensor.dtype);
    if (tensor.ndim < 0 ||
        (tensor.ndim != 0 && (tensor.shape == nullptr || tensor.strides == nullptr)))
      return fail(NETRA_ERROR_ARGUMENT, "%s: %s has %d dimensions, and shape or strides are null",
                  function, name, tensor.ndim);
  }
  return NETRA_OK;
}

bool fits_kind(const netra_slot& slot, uint8_t kind) {
  if (nb::is_real(kind)) return true;
  if (slot.kind == NETRA_REAL) return false;
  const Int128 value = slot.kind == NETRA_SIGNED ? static_cast<Int128>(slot.value.i)
                                                 : static_cast<Int128>(slot.value.u);
  switch (kind) {
    case nb::kScalarU32: return value >= 0 && value <= UINT32_MAX;
    case nb::kScalarI32: return value >= INT32_MIN && value <= INT32_MAX;
    default: return value >= INT64_MIN && value <= INT64_MAX;
  }
}

// Whether the arguments as such fit the op: each is there, of its kind, and within its storage.
bool fits_op(const nb::Catalog& tables, const nb::OpRecord& op, const netra_call& call) {
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    const nb::OpArgRecord& arg = tables.op_args[op.args + i];
    const netra_slot& slot = call.slots[i];
    if ((slot.kind == NETRA_TENSOR) != (arg.kind == nb::kTensor)) return false;
    if (slot.kind == NETRA_TENSOR) {
      const netra_tensor& tensor = slot.value.tensor;
      for (int d = 0; d < tensor.ndim; ++d)
        if (tensor.shape[d] < 0) return false;
      if (nb::last_byte(tensor) >= static_cast<Int128>(tensor.extent)) return false;
    } else if (slot.kind == NETRA_ABSENT ? arg.has_default == 0 : !fits_kind(slot, arg.kind)) {
      return false;
    }
  }
  return true;
}

// Why a tactic declines. `reason` null: it takes the call.
struct Verdict {
  const char* reason;
  int32_t passed;
};

Verdict judge(const nb::Catalog& tables, const nb::TacticRecord& tactic, const netra_call& call,
              bool fits) {
  if (tactic.arch != call.arch) return {"arch", -1};
  if (!fits) return {"args", -1};
  for (uint32_t i = 0; i < tactic.predicate_count; ++i) {
    const nb::PredicateRecord& predicate = tables.predicates[tactic.predicates + i];
    nb::Value value;
    const Outcome outcome = nb::run_program(tables, predicate.program, call, 0, &value);
    if (outcome == Outcome::kValue && value.integer != 0) continue;
    const char* id = outcome == Outcome::kOverflow ? "overflow" : tables.text(predicate.id);
    return {id, static_cast<int32_t>(i)};
  }
  const nb::OpRecord& op = tables.ops[tactic.op];
  for (uint32_t i = 0; i < op.arg_count; ++i) {
    const nb::OpArgRecord& arg = tables.op_args[op.args + i];
    if (arg.kind == nb::kTensor &&
        static_cast<uint32_t>(call.slots[i].value.tensor.ndim) != arg.dim_count)
      return {"args", static_cast<int32_t>(tactic.predicate_count)};
  }
  return {nullptr, static_cast<int32_t>(tactic.predicate_count)};
}

int decide(const netra_catalog* catalog, const netra_call& call, netra_decision* decision) {
  const nb::Catalog& tables = catalog->tables;
  const nb::OpRecord& op = tables.ops[static_cast<size_t>(call.op)];
  const bool fits = fits_op(tables, op, call);
  const nb::TacticRecord* taker = nullptr;
  const nb::TacticRecord* nearest = nullptr;
  *decision = {sizeof *decision, -1, -1, "op"};
  for (uint32_t i = op.tactics; i < op.tactics + op.tactic_count; ++i) {
    const nb::TacticRecord& tactic = tables.tactics[i];
    const uint8_t state = catalog->state[i].load(std::memory_order_relaxed);
    if (state == kNever) continue;
    // Only those of one target can take a call, and they come by rank: the first has the lowest.
    if (taker != nullptr && tactic.rank != taker->rank) break;
    Verdict verdict = judge(tables, tactic, call, fits);
    if (state == kOff) verdict.reason = verdict.reason == nullptr ? "disabled" : verdict.reason;
    if (verdict.reason == nullptr) {
      if (taker != nullptr)
        return fail(NETRA_ERROR_CATALOG,
                    "%s: %s and %s both take a call of %s, with equal rank. Narrow one of their "
                    "contracts, or give one another rank",
                    tables.path(), tables.text(taker->id), tables.text(tactic.id),
                    tables.text(op.name));
      taker = &tactic;
      *decision = {sizeof *decision, static_cast<int32_t>(i), verdict.passed, ""};
    } else if (taker == nullptr &&
               (nearest == nullptr || verdict.passed > decision->passed ||
                (verdict.passed == decision->passed &&
                 std::strcmp(tables.text(tactic.id), tables.text(nearest->id)) < 0))) {
      nearest = &tactic;
      *decision = {sizeof *decision, static_cast<int32_t>(i), verdict.passed, verdict.reason};
    }
  }
  return taker != nullptr ? NETRA_OK : NETRA_DECLINED;
}

// ---- what a taken call launches -------------------------------------------------------------

const char* text_of(Outcome outcome) {
  return outcome == Outcome::kOverflow ? "it leaves 128 bits" : "it is undefined";
}

// One planning: a tactic, a call that it takes, and the workspace.
struct Planner {
  const nb::Catalog& tables;
  const nb::TacticRecord& tactic;
  const netra_call& call;
  uint64_t workspace;

  // The integer that a program gives, from `low` to `high`.
  int number(uint32_t program, Int128 low, Int128 high, const char* what, Int128* value) const {
    nb::Value found;
    const Outcome outcome = nb::run_program(tables, program, call, workspace, &found);
    const char* id = tables.text(tactic.id);
    if (outcome != Outcome::kValue)
      return fail(NETRA_ERROR_LAUNCH, "%s: %s: %s", id, what, text_of(outcome));
    if (found.integer < low || found.integer > high)
      return fail(NETRA_ERROR_LAUNCH,
                  "%s: %s is about %.17g, want %.17g to %.17g. A predicate of the contract must "
                  "rule such a call out",
                  id, what, static_cast<double>(found.integer), static_cast<double>(low),
                  static_cast<double>(high));
    *value = found.integer;
    return NETRA_OK;
  }

  int workspace_bytes(uint64_t* bytes) const {
    Int128 value = 0;
    if (const int status = number(tactic.workspace, 0, INT64_MAX, "workspace.bytes", &value))
      return status;
    *bytes = static_cast<uint64_t>(value);
    return NETRA_OK;
  }

  int argument(const nb::ArgRecord& arg, nb::Type type, uint8_t* kernarg) const {
    struct Range {
      Int128 low, high;
      size_t bytes;
    };
    static constexpr Range kRanges[] = {
        {0, UINT64_MAX, 8}, {0, UINT64_MAX, 8}, {INT64_MIN, INT64_MAX, 8}, {},
        {0, UINT32_MAX, 4}, {INT32_MIN, INT32_MAX, 4}, {}};
    nb::Value found;
    const Outcome outcome = nb::run_program(tables, arg.program, call, workspace, &found);
    const char* id = tables.text(tactic.id);
    const char* name = tables.text(arg.name);
    if (outcome != Outcome::kValue)
      return fail(NETRA_ERROR_KERNARG, "%s: argument %s: %s", id, name, text_of(outcome));
    if (arg.kind == nb::kF32 || arg.kind == nb::kF64) {
      const double real =
          type == nb::Type::kReal ? found.real : static_cast<double>(found.integer);
      const auto single = static_cast<float>(real);
      if (arg.kind == nb::kF32)
        std::memcpy(kernarg + arg.offset, &single, sizeof single);
      else
        std::memcpy(kernarg + arg.offset, &real, sizeof real);
      return NETRA_OK;
    }
    const Range& range = kRanges[arg.kind];
    if (found.integer < range.low || found.integer > range.high)
      return fail(NETRA_ERROR_KERNARG,
                  "%s: argument %s is about %.17g and does not fit its %zu bytes. A predicate of "
                  "the contract must rule such a call out",
                  id, name, static_cast<double>(found.integer), range.bytes);
    const auto bits = static_cast<uint64_t>(found.integer);
    std::memcpy(kernarg + arg.offset, &bits, range.bytes);
    return NETRA_OK;
  }

  int launch(const nb::LaunchRecord& record, netra_plan* plan, void* kernarg) const {
    static constexpr const char* kAxis[] = {"grid x", "grid y", "grid z",
                                            "block x", "block y", "block z"};
    uint64_t threads = 1;
    Int128 value = 0;
    for (int i = 0; i < 3; ++i) {
      if (const int status =
              number(record.grid[i], 1, i == 0 ? INT32_MAX : 65535, kAxis[i], &value))
        return status;
      plan->grid[i] = static_cast<uint32_t>(value);
      if (const int status = number(record.block[i], 1, kMostThreads, kAxis[3 + i], &value))
        return status;
      plan->block[i] = static_cast<uint32_t>(value);
      threads *= plan->block[i];
    }
    if (threads > kMostThreads ||
        static_cast<uint64_t>(plan->grid[0]) * plan->block[0] > UINT32_MAX)
      return fail(NETRA_ERROR_LAUNCH,
                  "%s: grid (%u, %u, %u) of blocks (%u, %u, %u) is beyond what HIP launches",
                  tables.text(tactic.id), plan->grid[0], plan->grid[1], plan->grid[2],
                  plan->block[0], plan->block[1], plan->block[2]);
    const bool large = std::strcmp(tables.text(tactic.arch), "gfx950") == 0;
    if (const int status =
            number(record.lds, 0, (large ? 160 : 64) * 1024, "dynamic LDS", &value))
      return status;
    plan->dynamic_lds = static_cast<uint32_t>(value);
    plan->kernel = static_cast<int32_t>(record.kernel);
    plan->kernarg_size = record.kernarg_size;
    auto* bytes = static_cast<uint8_t*>(kernarg);
    if (record.kernarg_size != 0) std::memset(bytes, 0, record.kernarg_size);
    for (uint32_t i = record.args; i < record.args + record.arg_count; ++i)
      if (const int status = argument(tables.args[i], tables.arg_types[i], bytes)) return status;
    return NETRA_OK;
  }
};

// Refuses a tactic that is none, or does not take the call.
int check_taken(const netra_catalog* catalog, int tactic, const netra_call* call,
                const char* function) {
  if (const int status = check_call(catalog, call, function)) return status;
  const nb::Catalog& tables = catalog->tables;
  if (tactic < 0 || static_cast<size_t>(tactic) >= tables.tactics.size())
    return fail(NETRA_ERROR_ARGUMENT, "%s: the catalog has no tactic %d", function, tactic);
  const nb::TacticRecord& record = tables.tactics[static_cast<size_t>(tactic)];
  if (record.op != static_cast<uint32_t>(call->op))
    return fail(NETRA_ERROR_ARGUMENT, "%s: %s is no tactic of op %s", function,
                tables.text(record.id), tables.text(tables.ops[static_cast<size_t>(call->op)].name));
  const Verdict verdict =
      judge(tables, record, *call, fits_op(tables, tables.ops[record.op], *call));
  if (verdict.reason != nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "%s: %s does not take the call: %s", function,
                tables.text(record.id), verdict.reason);
  return NETRA_OK;
}

template <typename Record>
int find(const netra_catalog* catalog, const std::vector<Record>& records, size_t first,
         size_t count, uint32_t Record::*field, const char* wanted, const char* what) {
  for (size_t i = first; wanted != nullptr && i < first + count; ++i)
    if (std::strcmp(catalog->tables.text(records[i].*field), wanted) == 0)
      return static_cast<int>(i - first);
  return fail(NETRA_ERROR_ARGUMENT, "%s: it has no %s '%s'", catalog->tables.path(), what,
              wanted != nullptr ? wanted : "(null)");
}

int no_catalog(const char* function) {
  return fail(NETRA_ERROR_ARGUMENT, "%s: the catalog is null", function);
}

}  // namespace

extern "C" {

int netra_catalog_open(const char* path, int simulated, netra_catalog** catalog) {
  if (path == nullptr || catalog == nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "netra_catalog_open: path or catalog is null");
  return nb::guarded([&]() -> int {
    std::vector<uint8_t> bytes;
    if (const int status =
            nb::read_file(path, "a compiled catalog", ". Build it (make catalog)", &bytes))
      return status;
    auto made = std::make_unique<netra_catalog>();
    if (const int status = made->tables.read(bytes, path)) return status;
    made->state = std::vector<std::atomic<uint8_t>>(made->tables.tactics.size());
    for (size_t i = 0; i < made->state.size(); ++i)
      made->state[i] = admits(made->tables, made->tables.tactics[i], simulated != 0);
    *catalog = made.release();
    return NETRA_OK;
  });
}

void netra_catalog_close(netra_catalog* catalog) { delete catalog; }

int netra_catalog_disable(netra_catalog* catalog, const char* pattern, int disabled) {
  if (catalog == nullptr || pattern == nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "netra_catalog_disable: the catalog or the pattern is null");
  int count = 0;
  for (size_t i = 0; i < catalog->state.size(); ++i) {
    if (!matches(pattern, catalog->tables.text(catalog->tables.tactics[i].id))) continue;
    ++count;
    if (catalog->state[i] != kNever) catalog->state[i] = disabled != 0 ? kOff : kOn;
  }
  if (count != 0) return count;
  return fail(NETRA_ERROR_ARGUMENT, "%s: '%s' names no tactic", catalog->tables.path(), pattern);
}

int netra_catalog_op(const netra_catalog* catalog, const char* name) {
  if (catalog == nullptr) return no_catalog("netra_catalog_op");
  const auto& ops = catalog->tables.ops;
  return find(catalog, ops, 0, ops.size(), &nb::OpRecord::name, name, "op");
}

int netra_catalog_slot(const netra_catalog* catalog, int op, const char* name) {
  if (catalog == nullptr) return no_catalog("netra_catalog_slot");
  const nb::Catalog& tables = catalog->tables;
  if (op < 0 || static_cast<size_t>(op) >= tables.ops.size())
    return fail(NETRA_ERROR_ARGUMENT, "netra_catalog_slot: the catalog has no op %d", op);
  const nb::OpRecord& record = tables.ops[static_cast<size_t>(op)];
  return find(catalog, tables.op_args, record.args, record.arg_count, &nb::OpArgRecord::name, name,
              "argument");
}

int netra_catalog_tactic(const netra_catalog* catalog, const char* id) {
  if (catalog == nullptr) return no_catalog("netra_catalog_tactic");
  const auto& tactics = catalog->tables.tactics;
  return find(catalog, tactics, 0, tactics.size(), &nb::TacticRecord::id, id, "tactic");
}

const char* netra_catalog_op_name(const netra_catalog* catalog, int op) {
  if (catalog == nullptr || op < 0 || static_cast<size_t>(op) >= catalog->tables.ops.size())
    return "";
  return catalog->tables.text(catalog->tables.ops[static_cast<size_t>(op)].name);
}

int netra_catalog_op_count(const netra_catalog* catalog) {
  if (catalog == nullptr) return no_catalog("netra_catalog_op_count");
  return static_cast<int>(catalog->tables.ops.size());
}

int netra_catalog_tactic_count(const netra_catalog* catalog) {
  if (catalog == nullptr) return no_catalog("netra_catalog_tactic_count");
  return static_cast<int>(catalog->tables.tactics.size());
}

int netra_catalog_kernel_count(const netra_catalog* catalog) {
  if (catalog == nullptr) return no_catalog("netra_catalog_kernel_count");
  return static_cast<int>(catalog->tables.kernels.size());
}

int netra_catalog_launch_kernel(const netra_catalog* catalog, int tactic, int launch) {
  if (catalog == nullptr) return no_catalog("netra_catalog_launch_kernel");
  const nb::Catalog& tables = catalog->tables;
  if (tactic < 0 || static_cast<size_t>(tactic) >= tables.tactics.size() || launch < 0 ||
      static_cast<uint32_t>(launch) >= tables.tactics[static_cast<size_t>(tactic)].launch_count)
    return fail(NETRA_ERROR_ARGUMENT, "netra_catalog_launch_kernel: no launch %d of a tactic %d",
                launch, tactic);
  const nb::TacticRecord& record = tables.tactics[static_cast<size_t>(tactic)];
  return static_cast<int>(
      tables.launches[record.launches + static_cast<uint32_t>(launch)].kernel);
}

uint64_t netra_catalog_name(const netra_catalog* catalog, const char* name) {
  return catalog == nullptr || name == nullptr ? 0 : catalog->tables.name(name);
}

int netra_catalog_describe(const netra_catalog* catalog, int tactic, netra_tactic_info* info) {
  if (catalog == nullptr) return no_catalog("netra_catalog_describe");
  const nb::Catalog& tables = catalog->tables;
  if (tactic < 0 || static_cast<size_t>(tactic) >= tables.tactics.size())
    return fail(NETRA_ERROR_ARGUMENT, "netra_catalog_describe: the catalog has no tactic %d",
                tactic);
  const nb::TacticRecord& t = tables.tactics[static_cast<size_t>(tactic)];
  netra_tactic_info found{};
  found.id = tables.text(t.id);
  found.arch = tables.text(t.arch);
  found.op = static_cast<int32_t>(t.op);
  found.rank = static_cast<int32_t>(t.rank);
  found.admitted = catalog->state[static_cast<size_t>(tactic)] == kOn ? 1 : 0;
  found.launches = t.launch_count;
  found.maturity = kMaturity[t.maturity];
  found.hold = tables.text(t.hold);
  found.zeroed_by = tables.text(t.zeroed_by);
  return give(found, info, "netra_catalog_describe");
}

int netra_catalog_kernel(const netra_catalog* catalog, int kernel,
                         netra_catalog_kernel_info* info) {
  if (catalog == nullptr) return no_catalog("netra_catalog_kernel");
  const nb::Catalog& tables = catalog->tables;
  if (kernel < 0 || static_cast<size_t>(kernel) >= tables.kernels.size())
    return fail(NETRA_ERROR_ARGUMENT, "netra_catalog_kernel: the catalog has no kernel %d", kernel);
  const nb::KernelRecord& k = tables.kernels[static_cast<size_t>(kernel)];
  netra_catalog_kernel_info found{};
  found.name = tables.text(k.name);
  found.arch = tables.text(k.arch);
  found.kernarg_size = k.kernarg_size;
  found.wave_size = k.wave_size;
  found.max_workgroup = k.max_workgroup;
  std::memcpy(found.co_sha256, k.co_sha256, sizeof found.co_sha256);
  return give(found, info, "netra_catalog_kernel");
}

int netra_catalog_decide(const netra_catalog* catalog, const netra_call* call,
                         netra_decision* decision) {
  if (const int status = check_call(catalog, call, "netra_catalog_decide")) return status;
  netra_decision found;
  const int status = decide(catalog, *call, &found);
  if (status < 0) return status;
  const int given = give(found, decision, "netra_catalog_decide");
  return given != NETRA_OK ? given : status;
}

int netra_catalog_workspace(const netra_catalog* catalog, int tactic, const netra_call* call,
                            uint64_t* bytes) {
  if (bytes == nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "netra_catalog_workspace: bytes is null");
  if (const int status = check_taken(catalog, tactic, call, "netra_catalog_workspace"))
    return status;
  const nb::Catalog& tables = catalog->tables;
  return Planner{tables, tables.tactics[static_cast<size_t>(tactic)], *call, 0}.workspace_bytes(
      bytes);
}

int netra_catalog_plan(const netra_catalog* catalog, int tactic, int launch,
                       const netra_call* call, uint64_t workspace, netra_plan* plan, void* kernarg,
                       size_t capacity) {
  if (const int status = check_taken(catalog, tactic, call, "netra_catalog_plan")) return status;
  const nb::Catalog& tables = catalog->tables;
  const nb::TacticRecord& record = tables.tactics[static_cast<size_t>(tactic)];
  const char* id = tables.text(record.id);
  if (launch < 0 || static_cast<uint32_t>(launch) >= record.launch_count)
    return fail(NETRA_ERROR_ARGUMENT, "netra_catalog_plan: %s has no launch %d", id, launch);
  const nb::LaunchRecord& wanted = tables.launches[record.launches + static_cast<uint32_t>(launch)];
  if (capacity < wanted.kernarg_size || (kernarg == nullptr && wanted.kernarg_size != 0))
    return fail(NETRA_ERROR_ARGUMENT,
                "netra_catalog_plan: %s: the kernarg block has %u bytes, the buffer %zu", id,
                wanted.kernarg_size, kernarg == nullptr ? 0 : capacity);
  const Planner planner{tables, record, *call, workspace};
  if (workspace == 0) {
    uint64_t bytes = 0;
    if (const int status = planner.workspace_bytes(&bytes)) return status;
    if (bytes != 0)
      return fail(NETRA_ERROR_ARGUMENT,
                  "netra_catalog_plan: %s needs a workspace of %llu bytes and has none", id,
                  static_cast<unsigned long long>(bytes));
  }
  netra_plan made{};
  if (const int status = planner.launch(wanted, &made, kernarg)) return status;
  return give(made, plan, "netra_catalog_plan");
}

}  // extern "C"
