// Launches: dispatch state, workgroups, the seeded scheduler, budgets.
#include "machine.h"

#include <algorithm>
#include <cfenv>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>

#include "check/observer.h"
#include "launch.h"
#include "matrix_model.h"
#include "program.h"
#include "switches.h"
#include "wave.h"

namespace netra {
namespace {

constexpr Target kTargets[] = {
    {"gfx950", "gfx950:sramecc+:xnack-", 64, 256, 163840, 1280, 1024, 8, 8, 512, 8, 309220868096ull},
    {"gfx1151", "gfx1151", 32, 40, 65536, 512, 1024, 12, 24, 1536, 16, 103079215104ull},
};

// What a register or LDS byte holds that nothing defined: a quiet NaN, a wild address, a huge
// index; never a plausible value.
constexpr uint32_t kPoison = 0xfffadbad;

constexpr uint64_t kWaveBudget = 2'000'000'000, kLaunchBudget = 1'000'000'000'000;
constexpr double kSeconds = 600;
constexpr uint32_t kSeededGroups = 8, kFreeGroups = 4;
constexpr uint32_t kFreeQuantum = 1 << 14;
constexpr uint32_t kDynamicStack = 16384;   // bytes per lane, for kernels that grow their stack

uint64_t env_number(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  if (!text || !*text) return fallback;
  char* end = nullptr;
  const unsigned long long v = std::strtoull(text, &end, 10);
  return *end || v == 0 ? fallback : v;
}

// splitmix64: the schedule's random numbers (public domain constants, S. Vigna).
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((next() >> 32) * n >> 32); }
};

// ---- Programs, kept with their objects -----------------------------------------------------

struct Cached {
  std::shared_ptr<Disassembly> text[2];   // by wave64
  std::unordered_map<const Kernel*, std::shared_ptr<const Program>> programs;
};
std::mutex g_programs_mutex;
std::unordered_map<const CodeObject*, Cached>& programs() {
  static auto* map = new std::unordered_map<const CodeObject*, Cached>;
  return *map;
}

std::shared_ptr<const Program> program_for(const CodeObject& object, const Kernel& kernel,
                                           std::string* error) {
  const std::lock_guard<std::mutex> lock(g_programs_mutex);
  Cached& c = programs()[&object];
  std::shared_ptr<const Program>& p = c.programs[&kernel];
  if (p) return p;
  const bool wave64 = !kernel.descriptor.wave32;
  std::shared_ptr<Disassembly>& text = c.text[wave64];
  if (!text) text = disassemble(object, wave64, error);
  if (!text) return nullptr;
  p = Program::build(object, kernel, *text);
  return p;
}

// ---- Dispatch state ------------------------------------------------------------------------

uint32_t group_threads(const Launch& l) { return l.block[0] * l.block[1] * l.block[2]; }

// AQL kernel dispatch packet, for kernels that ask for its address (LLVM AMDGPUUsage).
struct alignas(64) Packet {
  uint16_t header = 0x1502, setup = 3;
  uint16_t block[3] = {};
  uint16_t reserved0 = 0;
  uint32_t grid[3] = {};
  uint32_t scratch = 0, lds = 0;
  uint64_t kernel = 0, kernarg = 0, reserved1 = 0, completion = 0;
};
static_assert(sizeof(Packet) == 64);

struct Dispatch {
  LaunchState state;
  Packet packet;
  alignas(64) uint8_t queue[256] = {};
  uint32_t waves_per_group = 0, lanes = 0, lds_bytes = 0, scratch_bytes = 0, vgprs = 0;
  uint64_t groups = 0;

  void add_region(RegionTable* table, const void* base, uint64_t size, const char* name) {
    Region r;
    r.base = reinterpret_cast<uint64_t>(base);
    r.size = r.mapped = size;
    r.kind = RegionKind::kernarg;
    r.writable = false;
    r.name = name;
    table->insert(std::upper_bound(table->begin(), table->end(), r,
                                   [](const Region& a, const Region& b) { return a.base < b.base; }),
                  r);
  }
};

void start_wave(const Dispatch& d, Group& g, uint32_t index, uint32_t hw_slot) {
  const LaunchState& s = d.state;
  const Descriptor& k = s.kernel->descriptor;
  Wave& w = g.waves[index];
  w.lanes = d.lanes;
  w.vgprs = d.vgprs;
  w.gfx11 = s.object->arch == "gfx1151";
  w.lane_mask = d.lanes == 64 ? ~0ull : 0xffffffffull;
  w.group = &g;
  w.launch = const_cast<LaunchState*>(&s);
  w.index = index;
  w.hw_slot = hw_slot;
  w.state = State::running;
  w.scc = false;
  w.region = nullptr;
  w.executed = 0;
  std::fill(std::begin(w.counts), std::end(w.counts), 0);
  w.fault.clear();
  w.fault_error = 0;
  w.ip = static_cast<uint32_t>(s.program->entry());
  const size_t stride = static_cast<size_t>(d.vgprs + 1) * d.lanes;   // and VOPD's spare row
  const uintptr_t base = (reinterpret_cast<uintptr_t>(g.registers.data()) + 63) & ~uintptr_t{63};
  w.v = reinterpret_cast<uint32_t*>(base) + stride * index;
  std::fill_n(w.v, stride, kPoison);
  std::fill(std::begin(w.s), std::end(w.s), kPoison);
  w.s[kNull] = 0;
  w.lds = g.lds.data();
  w.lds_bytes = d.lds_bytes;
  w.lds_limit = s.watch ? 0 : d.lds_bytes;
  w.scratch_bytes = d.scratch_bytes;
  w.scratch_limit = s.watch ? 0 : d.scratch_bytes;
  w.scratch = g.scratch.data() + static_cast<size_t>(index) * d.lanes * d.scratch_bytes;

  // MODE from rsrc1: round and denorm [19:12], DX10_CLAMP 21, IEEE 23, FP16_OVFL 26.
  w.set_mode((k.rsrc1 >> 12 & 0xff) | (k.rsrc1 >> 21 & 1) << 8 | (k.rsrc1 >> 23 & 1) << 9 |
             (k.rsrc1 >> 26 & 1) << 23);

  // User SGPRs, in the order of their enable bits; then kernarg preload; then workgroup ids.
  uint32_t n = 0;
  const auto put64 = [&](uint64_t x) { w.set_pair(n, x), n += 2; };
  if (k.properties & 1) put64(0), put64(0);   // private segment buffer: unused by both targets
  if (k.properties & 2) put64(reinterpret_cast<uint64_t>(&d.packet));
  if (k.properties & 4) put64(reinterpret_cast<uint64_t>(&d.queue));
  if (k.properties & 8) put64(s.launch.kernarg);
  if (k.properties & 16) put64(1);
  if (k.properties & 32) put64(0);
  if (k.properties & 64) w.s[n++] = d.scratch_bytes;
  const uint32_t preload = k.preload & 127, from = k.preload >> 7;
  for (uint32_t j = 0; j < preload; ++j)
    std::memcpy(&w.s[n++], reinterpret_cast<const uint8_t*>(s.launch.kernarg) + 4 * (from + j), 4);
  n = std::max(n, k.rsrc2 >> 1 & 31);
  for (int axis = 0; axis < 3; ++axis)
    if (k.rsrc2 >> (7 + axis) & 1) w.s[n++] = g.id[axis];
  if (k.rsrc2 >> 10 & 1) w.s[n++] = (index == 0) << 31u | index << 20 | d.waves_per_group;

  // EXEC: lanes inside the workgroup. v0 packs the enabled work-item ids, ten bits each.
  const uint32_t threads = group_threads(s.launch), first = index * d.lanes;
  const uint32_t count = std::min(d.lanes, threads - first);
  w.set_exec(count == 64 ? ~0ull : (1ull << count) - 1);
  if (d.lanes == 32) w.s[kExec + 1] = 0;
  w.mask_exec = ~w.exec();   // forces the lane rows to be made
  const uint32_t dims = k.rsrc2 >> 11 & 3;
  for (uint32_t l = 0; l < count; ++l) {
    const uint32_t flat = first + l, x = flat % s.launch.block[0],
                   y = flat / s.launch.block[0] % s.launch.block[1],
                   z = flat / s.launch.block[0] / s.launch.block[1];
    w.v[l] = x | (dims >= 1 ? y << 10 : 0) | (dims >= 2 ? z << 20 : 0);
  }
}

void start_group(const Dispatch& d, Group& g, uint64_t number) {
  const Launch& l = d.state.launch;
  g.id[0] = static_cast<uint32_t>(number % l.grid[0]);
  g.id[1] = static_cast<uint32_t>(number / l.grid[0] % l.grid[1]);
  g.id[2] = static_cast<uint32_t>(number / l.grid[0] / l.grid[1]);
  g.live = d.waves_per_group;
  g.waiting = 0;
  g.waves.resize(d.waves_per_group);
  g.registers.resize(static_cast<size_t>(d.vgprs + 1) * d.lanes * d.waves_per_group + 16);
  g.lds.resize(d.lds_bytes);
  for (size_t k = 0; k + 4 <= g.lds.size(); k += 4) std::memcpy(&g.lds[k], &kPoison, 4);
  g.scratch.resize(static_cast<size_t>(d.scratch_bytes) * d.lanes * d.waves_per_group);
  for (uint32_t k = 0; k < d.waves_per_group; ++k)
    start_wave(d, g, k, static_cast<uint32_t>(number));
  if (d.state.watch) d.state.watch->start_group(g);
}

// ---- Running -------------------------------------------------------------------------------

// One loop in two forms: the observed one tells the watch of each instruction.
template <bool kObserved>
uint32_t run_slice(Wave& w, uint32_t quantum) {
  const Insn* code = w.launch->program->code();
  uint32_t left = quantum;
  while (left) {
    const Insn& i = code[w.ip++];
    ++w.counts[i.tally];
    --left;
    if (w.mode & kModeVskip && is_vector(i.cls)) [[unlikely]] continue;
    if constexpr (kObserved) {
      Watch& watch = *w.launch->watch;
      const Facts& facts = watch.facts[i];
      watch.before(w, i, facts);
      i.execute(w, i);
      if (w.state != State::faulted) watch.after(w, i, facts);
    } else {
      i.execute(w, i);
    }
    if (w.state != State::running) break;
  }
  w.executed += quantum - left;
  return quantum - left;
}

// The host's floating point as the rows expect it, nearest even with denormals, whatever the caller
// of the launch has set (torch.set_flush_denormal, say); given back afterwards.
class HostFloat {
 public:
  HostFloat() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);   // on x86-64 this is MXCSR too, flush and denormals-are-zero included
  }
  ~HostFloat() { std::fesetenv(&saved_); }
  HostFloat(const HostFloat&) = delete;
  HostFloat& operator=(const HostFloat&) = delete;

 private:
  std::fenv_t saved_;
};

// One host thread's share of a launch.
class Runner {
 public:
  Runner(Dispatch& d, std::atomic<uint64_t>& next_group, bool seeded, uint64_t seed)
      : d_(d), next_(next_group), seeded_(seeded), random_{seed} {}

  // The host may have no memory for a workgroup.
  void run() {
    const HostFloat host_float;
    try {
      run_groups();
    } catch (const std::bad_alloc&) {
      stop(d_.state.kernel->name + ": the host has no memory for a workgroup of it", 719);
    }
  }

 private:
  void run_groups() {
    const uint32_t residents = seeded_ ? kSeededGroups : kFreeGroups;
    std::vector<std::unique_ptr<Group>> groups;
    const auto refill = [&] {
      // Unseeded, a second group is only taken when the first does not finish in its quanta (it
      // may be waiting for another one).
      const uint64_t number = next_.fetch_add(1);
      if (number >= d_.groups) return false;
      std::unique_ptr<Group> g = spare_.empty() ? std::make_unique<Group>() : std::move(spare_.back());
      if (!spare_.empty()) spare_.pop_back();
      start_group(d_, *g, order_.empty() ? number : order_[number]);
      groups.push_back(std::move(g));
      return true;
    };
    if (seeded_) shuffle_order();
    bool more = true;
    size_t turn = 0;
    while (!d_.state.stop.load(std::memory_order_relaxed)) {
      while (more && groups.size() < (seeded_ ? residents : std::max<size_t>(1, std::min<size_t>(stalled_ + 1, residents))))
        more = refill();
      if (groups.empty()) break;
      const size_t at = seeded_ ? random_.below(static_cast<uint32_t>(groups.size())) : turn++ % groups.size();
      Group& g = *groups[at];
      step(g);
      if (g.live == 0) {
        finish(g);
        spare_.push_back(std::move(groups[at]));
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(at));
        stalled_ = 0;
      } else if (!seeded_) {
        ++stalled_;
      }
      if (!within_budget(groups)) break;
    }
    for (const auto& g : groups) finish(*g);
    for (auto& g : groups) spare_.push_back(std::move(g));
  }


 public:
  std::map<std::string, uint64_t> counters() const {
    std::map<std::string, uint64_t> out;
    uint64_t total = 0;
    static constexpr const char* kPromises[] = {"numerics.exact", "numerics.within_1_ulp", "numerics.model"};
    for (int c = 0; c < static_cast<int>(Class::count); ++c) {
      uint64_t of_class = 0;
      for (int p = 0; p < static_cast<int>(Promise::count); ++p) {
        const uint64_t n = counts_[tally_of(static_cast<Class>(c), static_cast<Promise>(p))];
        out[kPromises[p]] += n;
        of_class += n;
      }
      if (of_class) out[std::string("instructions.") + class_name(static_cast<Class>(c))] = of_class;
      total += of_class;
    }
    out["instructions"] = total;
    out["waves"] = waves_;
    return out;
  }

 private:
  // Every workgroup once, in the order of the seed (Fisher-Yates); larger grids in launch order.
  void shuffle_order() {
    if (d_.groups > (1u << 22)) return;
    order_.resize(d_.groups);
    for (uint64_t k = 0; k < d_.groups; ++k) order_[k] = k;
    for (uint64_t k = d_.groups; k > 1; --k)
      std::swap(order_[k - 1], order_[random_.below(static_cast<uint32_t>(k))]);
  }

  void step(Group& g) {
    if (seeded_) {
      uint32_t ready = 0;
      for (const Wave& w : g.waves) ready += w.state == State::running;
      if (!ready) return deadlock(g);
      uint32_t pick = random_.below(ready);
      for (Wave& w : g.waves)
        if (w.state == State::running && pick-- == 0) return slice(w, 1 + random_.below(64));
    } else {
      bool ran = false;
      for (Wave& w : g.waves) {
        if (w.state != State::running) continue;
        ran = true;
        slice(w, kFreeQuantum);
        if (d_.state.stop.load(std::memory_order_relaxed)) return;
      }
      if (!ran) deadlock(g);
    }
  }

  void slice(Wave& w, uint32_t quantum) {
    const uint64_t left = d_.state.options.wave_budget - w.executed;   // a wave past it has stopped
    quantum = static_cast<uint32_t>(std::min<uint64_t>(quantum - 1, left)) + 1;
    budget_ += d_.state.watch ? run_slice<true>(w, quantum) : run_slice<false>(w, quantum);
    if (w.state == State::faulted) return stop(w.fault, w.fault_error);
    if (w.executed > d_.state.options.wave_budget) {
      const Insn& i = d_.state.program->code()[w.ip];
      tell_stuck(*w.group);
      fault(w, i, 719, "a wave executed " + std::to_string(w.executed) +
                           " instructions without ending (budget NETRA_SIM_WAVE_BUDGET)");
      stop(w.fault, w.fault_error);
    }
  }

  void tell_stuck(Group& g) {
    if (d_.state.watch)
      for (auto& o : d_.state.watch->observers) o->stuck(g);
  }

  void deadlock(Group& g) {
    tell_stuck(g);
    for (Wave& w : g.waves) {
      if (w.state == State::ended) continue;
      const Insn& i = d_.state.program->code()[w.ip ? w.ip - 1 : 0];
      fault(w, i, 719, "the workgroup can never go on: every wave that has not ended waits here");
      return stop(w.fault, w.fault_error);
    }
  }

  // Looked at after each full quantum of this thread: an instruction may take microseconds.
  bool within_budget(const std::vector<std::unique_ptr<Group>>& groups) {
    if (budget_ < std::min<uint64_t>(kFreeQuantum, d_.state.options.launch_budget)) return true;
    const uint64_t all = d_.state.executed.fetch_add(budget_) + budget_;
    budget_ = 0;
    if (all > d_.state.options.launch_budget)
      return spent(groups, "the launch executed " + std::to_string(all) +
                               " instructions without ending (budget NETRA_SIM_LAUNCH_BUDGET)");
    if (std::chrono::steady_clock::now() > d_.state.deadline)
      return spent(groups, "the launch ran out of wall time (budget NETRA_SIM_SECONDS)");
    return true;
  }

  // Stops the launch where one of its waves stands.
  bool spent(const std::vector<std::unique_ptr<Group>>& groups, const std::string& why) {
    for (const auto& g : groups)
      for (Wave& w : g->waves) {
        if (w.state == State::ended || w.state == State::faulted) continue;
        tell_stuck(*g);
        fault(w, d_.state.program->code()[w.ip], 719, why);
        stop(w.fault, w.fault_error);
        return false;
      }
    stop(d_.state.kernel->name + ": " + why, 719);
    return false;
  }

  void stop(const std::string& text, int error) {
    const std::lock_guard<std::mutex> lock(d_.state.fault_mutex);
    if (!d_.state.fault_error) {
      d_.state.fault = text;
      d_.state.fault_error = error;
    }
    d_.state.stop = true;
  }

  void finish(Group& g) {
    if (d_.state.watch) d_.state.watch->end_group(g);
    for (const Wave& w : g.waves)
      for (int c = 0; c < kTallies; ++c) counts_[c] += w.counts[c];
    waves_ += g.waves.size();
  }

  Dispatch& d_;
  std::atomic<uint64_t>& next_;
  bool seeded_;
  Random random_;
  std::vector<uint64_t> order_;
  std::vector<std::unique_ptr<Group>> spare_;
  size_t stalled_ = 0;
  uint64_t budget_ = 0;
  uint64_t counts_[kTallies] = {};
  uint64_t waves_ = 0;
};

}  // namespace

const Target* find_target(const std::string& arch) {
  for (const Target& t : kTargets)
    if (arch == t.arch) return &t;
  return nullptr;
}

LaunchResult run_launch(const Target& target, const Memory& memory, const Launch& launch,
                        const RunOptions& options) {
  LaunchResult result;
  const auto refuse = [&](const std::string& why) {
    result.hip_error = 719;
    result.fault = launch.kernel->name + ": " + why;
    return result;
  };
  for (const std::string* wrong : {&switches_error(), &matrix_model_error(), &host_error()})
    if (!wrong->empty()) return refuse(*wrong);
  std::string error;
  const std::shared_ptr<const Program> program = program_for(*launch.object, *launch.kernel, &error);
  if (!program) return refuse(error);
  if (program->entry() < 0) return refuse(launch.kernel->descriptor.preload & 127
      ? "its preload needs code 256 bytes after its entry, where firmware starts it"
      : "its entry is not an instruction");

  Dispatch d;
  const Descriptor& k = launch.kernel->descriptor;
  d.state.target = &target;
  d.state.object = launch.object;
  d.state.kernel = launch.kernel;
  d.state.program = program.get();
  d.state.launch = launch;
  d.state.options = options;
  RunOptions& o = d.state.options;
  if (!o.wave_budget) o.wave_budget = env_number("NETRA_SIM_WAVE_BUDGET", kWaveBudget);
  if (!o.launch_budget) o.launch_budget = env_number("NETRA_SIM_LAUNCH_BUDGET", kLaunchBudget);
  if (o.seconds <= 0) o.seconds = static_cast<double>(env_number("NETRA_SIM_SECONDS", static_cast<uint64_t>(kSeconds)));
  d.state.deadline = std::chrono::steady_clock::now() +
                     std::chrono::milliseconds(static_cast<int64_t>(o.seconds * 1000));
  d.lanes = k.wave32 ? 32 : 64;
  d.vgprs = k.vgprs_allocated;
  d.waves_per_group = (group_threads(launch) + d.lanes - 1) / d.lanes;
  d.lds_bytes = k.lds_bytes + launch.dynamic_lds;
  d.scratch_bytes = k.scratch_bytes + (k.dynamic_stack ? kDynamicStack : 0);
  d.groups = static_cast<uint64_t>(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  d.state.regions = memory.table();
  const std::vector<KernelArg>& args = launch.kernel->args;
  const auto queue_arg = std::find_if(args.begin(), args.end(), [](const KernelArg& a) {
    return a.value_kind == "hidden_queue_ptr" && a.size == 8;
  });
  if (queue_arg != args.end() && launch.kernarg) {
    const uint64_t queue = reinterpret_cast<uint64_t>(&d.queue);
    std::memcpy(reinterpret_cast<uint8_t*>(launch.kernarg) + queue_arg->offset, &queue, 8);
  }
  if (k.properties & 6 || queue_arg != args.end()) {
    for (int axis = 0; axis < 3; ++axis) {
      d.packet.block[axis] = static_cast<uint16_t>(launch.block[axis]);
      d.packet.grid[axis] = launch.grid[axis] * launch.block[axis];
    }
    d.packet.scratch = d.scratch_bytes;
    d.packet.lds = d.lds_bytes;
    d.packet.kernel = launch.kernel->descriptor_address;
    d.packet.kernarg = launch.kernarg;
    auto table = std::make_shared<RegionTable>(*d.state.regions);
    d.add_region(table.get(), &d.packet, sizeof d.packet, "dispatch packet");
    d.add_region(table.get(), &d.queue, sizeof d.queue, "queue");
    d.state.regions = table;
  }

  if (!o.checked)   // whatever it writes, nobody notes it
    for (const Region& region : *d.state.regions)
      if (region.defined) region.defined->set(0, region.size, true);

  // Observers run on one host thread.
  std::unique_ptr<Watch> watch;
  if (o.checked || o.counting || o.trace_limit) {
    watch = std::make_unique<Watch>(d.state, d.lanes);
    attach_observers(*watch, d.state);
    d.state.watch = watch.get();
  }

  const bool one_thread = o.seeded || watch;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t wanted = o.threads ? o.threads : env_number("NETRA_SIM_THREADS", cores);
  const unsigned threads = one_thread ? 1 : static_cast<unsigned>(std::min({wanted, d.groups, uint64_t{256}}));
  std::atomic<uint64_t> next{0};
  std::vector<Runner> runners;
  for (unsigned t = 0; t < threads; ++t) runners.emplace_back(d, next, one_thread, o.seed);
  std::vector<std::thread> pool;
  for (unsigned t = 1; t < threads; ++t) pool.emplace_back([&runners, t] { runners[t].run(); });
  runners[0].run();
  for (std::thread& t : pool) t.join();

  for (const Runner& r : runners)
    for (const auto& [name, value] : r.counters()) result.counters[name] += value;
  result.counters["workgroups"] = d.groups;
  if (watch) {
    for (auto& observer : watch->observers) observer->finish(d.state);
    result.findings = watch->findings.take();
    result.counters.merge(watch->counters);
    result.trace = std::move(watch->trace);
  }
  result.fault = d.state.fault;
  result.hip_error = d.state.fault_error;
  return result;
}

bool used_registers(const CodeObject& object, const Kernel& kernel, UsedRegisters* used,
                    std::string* error) {
  const std::shared_ptr<const Program> program = program_for(object, kernel, error);
  if (!program) return false;
  *used = program->used();
  return true;
}

void forget_program(const CodeObject* object) {
  const std::lock_guard<std::mutex> lock(g_programs_mutex);
  programs().erase(object);
}

}  // namespace netra
