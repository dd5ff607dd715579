#include "wait_counts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <unordered_map>

#include "../launch.h"
#include "lanes_touched.h"
#include "memory_order.h"
#include "observer.h"

namespace netra {
namespace {

// What a register or LDS dword holds while its data is on the way: a NaN, a wild address.
constexpr uint32_t kPending = 0xfff0deadu;

uint32_t spread(uint8_t bytes) {
  return (bytes & 1 ? 0xffu : 0) | (bytes & 2 ? 0xff00u : 0) | (bytes & 4 ? 0xff0000u : 0) | (bytes & 8 ? 0xff000000u : 0);
}

// A write to LDS that other waves, or this one, may have to wait for.
struct LdsWrite {
  const Insn* insn = nullptr;
  uint32_t wave = 0;
  uint32_t epoch = 0;        // barriers that the writer had passed
  uint32_t done_epoch = 0;   // ... when it was provably complete
  bool done = false;
  bool ordered = false;      // a DS write: later DS instructions of the same wave come after it
};

// One memory instruction of a wave that is not provably complete.
struct Op {
  const Insn* insn = nullptr;
  uint8_t counters = 0;                 // still to be waited for
  // FLAT: the counter of the memory that no lane went to. The data does not need it here, but
  // nothing in the code says so.
  uint8_t spare_counter = 0;
  bool delivered = false;
  uint8_t order[kCounters] = {};
  uint64_t number[kCounters] = {};      // in its counter and order
  Ref to{};                             // destination; count 0 when there is none
  uint64_t lanes = 0;
  std::vector<uint32_t> data;           // what will be delivered: [register][lane], or [register]
  std::vector<std::pair<uint32_t, uint8_t>> lds;   // LDS DMA: byte and value
  uint32_t record = 0;                  // of LdsWrite, 0 for none
};

// What a wait is good for, over all waves of the launch.
struct Use {
  bool seen = false;      // in the wave below
  bool useful = false;    // more was outstanding than it allows
  bool needed = false;    // something that it proved was touched before another wait would have proved it
  uint32_t index = 0;
  uint32_t group[3] = {};
};

// A result that a wait has proved to be there, and that nobody has touched since.
struct Proved {
  Ref to{};
  uint8_t counter = 0, order = 0;
  uint64_t number = 0;
  Use* use = nullptr;
};

struct WaveState {
  std::vector<Proved> proved;
  std::vector<uint8_t> proved_vgpr;     // by row: how many of them
  uint8_t proved_scalar[kScalarFile + 1] = {};
  uint64_t stored[kCounters][kOrders] = {};   // number of the last operation without a result
  Use* waiting = nullptr;               // the wait that is being carried out
  std::vector<Op> ops;                  // in the order of issue
  std::vector<Op> spare;
  uint64_t issued[kCounters][kOrders] = {}, complete[kCounters][kOrders] = {};
  std::vector<uint16_t> vgpr;           // operations that a row waits for
  uint16_t scalar[kScalarFile + 1] = {};
  uint32_t epoch = 0;
  const Insn* last_wait = nullptr;
  uint64_t clock = 0, last_wait_clock = 0;
};

struct GroupState {
  std::vector<uint32_t> writer;         // by LDS byte: number of its LdsWrite, 0 for none
  std::vector<LdsWrite> writes;
};

class WaitCounts : public Observer {
 public:
  WaitCounts(Watch& watch, LaunchState& launch)
      : watch_(watch), launch_(launch), gfx9_(launch.object->arch == "gfx950"),
        most_{counter_most(kVm, gfx9_), counter_most(kLgkm, gfx9_), counter_most(kExp, gfx9_), counter_most(kVs, gfx9_)} {}

  void start_group(Group& g) override {
    GroupState& s = groups_[&g];
    s.writer.assign(g.lds.size(), 0);
    s.writes.assign(1, {});
    for (Wave& w : g.waves) {
      WaveState& state = waves_[&w];
      state = {};
      state.vgpr.assign(w.vgprs + 1, 0);
      state.proved_vgpr.assign(w.vgprs + 1, 0);
    }
    last_ = nullptr;
  }

  void before(Wave& w, const Insn& i, const Facts& facts) override {
    WaveState& s = state(w);
    ++s.clock;
    if (facts.waits) return wait(w, s, i, facts);
    if (s.ops.empty() && s.proved.empty()) return;
    Facts moved;
    const Facts& f = resolve(w, facts, &moved);
    if (!s.proved.empty()) {
      for (int k = 0; k < f.reads; ++k) use_proved(s, f.read[k]);
      for (int k = 0; k < f.writes; ++k) use_proved(s, f.written[k]);
    }
    if (s.ops.empty()) return;
    for (int k = 0; k < f.reads; ++k)
      if (is_pending(s, f.read[k])) touch(w, s, i, f, f.read[k], false);
    for (int k = 0; k < f.writes; ++k)
      if (is_pending(s, f.written[k])) touch(w, s, i, f, f.written[k], true);
  }

  void after(Wave& w, const Insn& i, const Facts& f, Accesses accesses) override {
    if (!accesses.empty() && w.lds_bytes) lds_accesses(w, i, f, accesses);
    if (f.counters) issue(w, i, f, accesses);
    if (w.state == State::ended) state(w).ops.clear();
  }

  void barrier_released(Group& g) override {
    for (Wave& w : g.waves) ++waves_[&w].epoch;
  }

  void end_group(Group& g) override {
    for (Wave& w : g.waves) waves_.erase(&w);
    groups_.erase(&g);
    last_ = nullptr;
  }

  // A wait that never had anything to wait for.
  void finish(LaunchState&) override {
    for (auto& [insn, use] : waits_) {
      if (!use.seen || (use.useful && use.needed)) continue;
      Wave w;
      w.index = use.index;
      Group g;
      std::copy(use.group, use.group + 3, g.id);
      w.group = &g;
      Finding* f = watch_.findings.add(w, *insn, nullptr, "wait", use.useful ? "C.4 early" : "C.4 idle", Severity::warning, Certainty::inferred);
      if (!f) continue;
      if (use.useful) {
        f->text = "nothing that this wait waits for is touched before another wait that waits for it too";
        f->mend = "remove it, or move it down to the first instruction that needs it";
        continue;
      }
      f->text = "this wait never had more outstanding than it allows, in any wave of the launch";
      f->mend = "remove it, or move it behind the instructions that it is meant to wait for";
    }
  }

 private:
  WaveState& state(const Wave& w) {
    if (last_wave_ != &w || !last_) last_wave_ = &w, last_ = &waves_[&w];
    return *last_;
  }

  static bool is_pending(const WaveState& s, const Ref& r) {
    for (uint32_t k = r.index; k < r.index + r.count; ++k)
      if (r.file == File::vgpr ? s.vgpr[k] : s.scalar[k]) return true;
    return false;
  }

  // ---- issue and delivery --------------------------------------------------------------------

  Order order_of(const Facts& f, int counter) const { return netra::order_of(f, counter, gfx9_); }

  void issue(Wave& w, const Insn& i, const Facts& f, Accesses accesses) {
    WaveState& s = state(w);
    Op op;
    if (!s.spare.empty()) op = std::move(s.spare.back()), s.spare.pop_back();
    op.insn = &i;
    op.counters = f.counters;
    op.spare_counter = 0;
    op.delivered = false;
    if (f.is(kIsFlat)) {
      const auto lds = [](const MemoryAccess& a) { return a.space == Space::lds; };
      if (std::none_of(accesses.begin(), accesses.end(), lds)) op.spare_counter = 1u << kLgkm;
      else if (std::all_of(accesses.begin(), accesses.end(), lds)) op.spare_counter = f.counters & ~(1u << kLgkm);
    }
    op.to = {};
    op.lds.clear();
    op.record = 0;
    for (int c = 0; c < kCounters; ++c) {
      if (!(f.counters >> c & 1)) continue;
      op.order[c] = order_of(f, c);
      op.number[c] = ++s.issued[c][op.order[c]];
    }
    if (f.writes) take(w, s, f.written[0], op);
    record_lds(w, s, i, f, accesses, op);
    if (op.to.count || op.record) {
      s.ops.push_back(std::move(op));
    } else {
      for (int c = 0; c < kCounters; ++c)
        if (f.counters >> c & 1) s.stored[c][op.order[c]] = op.number[c];
      s.spare.push_back(std::move(op));
    }
    // A full counter holds the wave back until the oldest is done.
    for (int c = 0; c < kCounters; ++c)
      if (f.counters >> c & 1 && s.issued[c][order_of(f, c)] - s.complete[c][order_of(f, c)] > most_[c])
        down_to(w, s, c, most_[c]);
  }

  // Saves what the instruction has put into its destination, and leaves garbage there.
  void take(Wave& w, WaveState& s, const Ref& to, Op& op) {
    op.to = to;
    op.lanes = w.exec();
    count_pending(s, to, 1);
    if (to.file == File::scalar) {
      op.data.assign(&w.s[to.index], &w.s[to.index] + to.count);
      std::fill_n(&w.s[to.index], to.count, kPending);
      return;
    }
    const uint32_t mask = spread(to.bytes);
    op.data.resize(static_cast<size_t>(to.count) * w.lanes);
    for (uint32_t k = 0; k < to.count; ++k) {
      uint32_t* row = w.row(to.index + k);
      std::memcpy(&op.data[static_cast<size_t>(k) * w.lanes], row, 4 * w.lanes);
      for (uint64_t m = op.lanes; m; m &= m - 1) {
        uint32_t& x = row[std::countr_zero(m)];
        x = (x & ~mask) | (kPending & mask);
      }
    }
  }
  static void count_pending(WaveState& s, const Ref& to, int by) {
    for (uint32_t k = to.index; k < static_cast<uint32_t>(to.index + to.count); ++k)
      (to.file == File::scalar ? s.scalar[k] : s.vgpr[k]) += static_cast<uint16_t>(by);
  }

  void deliver(Wave& w, WaveState& s, size_t at) {
    Op& op = s.ops[at];
    if (op.record) {
      LdsWrite& r = groups_[w.group].writes[op.record];
      r.done = true;
      r.done_epoch = s.epoch;
      for (const auto& [byte, value] : op.lds)
        if (groups_[w.group].writer[byte] == op.record) w.lds[byte] = value;
    }
    for (uint32_t k = 0; k < op.to.count; ++k) {
      const uint32_t number = op.to.index + k;
      if (op.to.file == File::scalar) {
        w.s[number] = op.data[k];
        continue;
      }
      uint32_t* row = w.row(number);
      const uint32_t* data = &op.data[static_cast<size_t>(k) * w.lanes];
      for (uint64_t m = op.lanes; m; m &= m - 1) {
        const int l = std::countr_zero(m);
        uint32_t mask = spread(op.to.bytes);
        if (s.vgpr[number] > 1)   // a later load of the same register is still on its way
          for (size_t n = at + 1; n < s.ops.size(); ++n)
            if (covers(s.ops[n], number) && !s.ops[n].delivered && s.ops[n].lanes >> l & 1) mask &= ~spread(s.ops[n].to.bytes);
        row[l] = (row[l] & ~mask) | (data[l] & mask);
      }
    }
  }
  static bool covers(const Op& op, uint32_t row) {
    return op.to.file == File::vgpr && row >= op.to.index && row < static_cast<uint32_t>(op.to.index + op.to.count);
  }

  // After a wait for at most `n` outstanding on a counter.
  void down_to(Wave& w, WaveState& s, int c, uint64_t n) {
    for (int o = 0; o < kOrders; ++o) {
      uint64_t& done = s.complete[c][o];
      const uint64_t all = s.issued[c][o];
      if (in_order(static_cast<uint8_t>(o))) done = std::max(done, all > n ? all - n : 0);
      else if (n == 0) done = all;
    }
    size_t kept = 0;
    for (size_t k = 0; k < s.ops.size(); ++k) {
      Op& op = s.ops[k];
      if (op.counters >> c & 1 && op.number[c] <= s.complete[c][op.order[c]]) {
        // Which of the two waits for a flat access is the one that matters is not followed.
        if (s.waiting && std::popcount(watch_.facts[*op.insn].counters) > 1) s.waiting->needed = true;
        op.counters &= static_cast<uint8_t>(~(1u << c));
      }
      if (op.delivered || op.counters & ~op.spare_counter) continue;
      deliver(w, s, k);
      op.delivered = true;
    }
    for (size_t k = 0; k < s.ops.size(); ++k) {
      if (!s.ops[k].counters) {
        count_pending(s, s.ops[k].to, -1);
        if (s.waiting) note_proved(s, s.ops[k]);
        s.spare.push_back(std::move(s.ops[k]));
        continue;
      }
      if (kept != k) s.ops[kept] = std::move(s.ops[k]);
      ++kept;
    }
    s.ops.resize(kept);
  }

  void wait(Wave& w, WaveState& s, const Insn& i, const Facts& f) {
    s.last_wait = &i;
    s.last_wait_clock = s.clock;
    Use& use = waits_[&i];
    if (!use.seen) {
      use.seen = true;
      use.index = w.index;
      std::copy(w.group->id, w.group->id + 3, use.group);
    }
    for (int c = 0; c < kCounters; ++c) {
      if (!(f.waits >> c & 1)) continue;
      uint64_t outstanding = 0;
      for (int o = 0; o < kOrders; ++o) outstanding += s.issued[c][o] - s.complete[c][o];
      use.useful |= outstanding > f.wait[c];
      for (int o = 0; o < kOrders; ++o) use.needed |= s.stored[c][o] > s.complete[c][o] && outstanding > f.wait[c];
      // What an earlier wait has proved, and this one would have too, needs only this one.
      for (Proved& p : s.proved)
        if (p.counter == c && (in_order(p.order) ? p.number + f.wait[c] <= s.issued[c][p.order] : f.wait[c] == 0)) p.use = &use;
      s.waiting = &use;
      down_to(w, s, c, f.wait[c]);
      s.waiting = nullptr;
    }
  }

  // ---- what waits are good for ---------------------------------------------------------------

  void note_proved(WaveState& s, const Op& op) {
    const uint8_t counters = watch_.facts[*op.insn].counters;
    if (op.record || !op.to.count || std::popcount(counters) != 1) {   // LDS is read by others; flat has two
      s.waiting->needed = true;
      return;
    }
    const int c = std::countr_zero(counters);
    s.proved.push_back({op.to, static_cast<uint8_t>(c), op.order[c], op.number[c], s.waiting});
    count_proved(s, op.to, 1);
  }
  static void count_proved(WaveState& s, const Ref& to, int by) {
    for (uint32_t k = to.index; k < static_cast<uint32_t>(to.index + to.count); ++k)
      (to.file == File::scalar ? s.proved_scalar[k] : s.proved_vgpr[k]) += static_cast<uint8_t>(by);
  }
  void use_proved(WaveState& s, const Ref& r) {
    bool any = false;
    for (uint32_t k = r.index; k < r.index + r.count; ++k) any |= (r.file == File::vgpr ? s.proved_vgpr[k] : s.proved_scalar[k]) != 0;
    if (!any) return;
    std::erase_if(s.proved, [&](const Proved& p) {
      if (p.to.file != r.file || p.to.index >= r.index + r.count || r.index >= p.to.index + p.to.count) return false;
      p.use->needed = true;
      count_proved(s, p.to, -1);
      return true;
    });
  }

  // ---- registers -----------------------------------------------------------------------------

  void touch(const Wave& w, const WaveState& s, const Insn& i, const Facts& f, const Ref& r, bool write) {
    const LaneSets sets = lanes_touched(w, f);
    const uint64_t lanes = r.file == File::scalar ? 1 : write ? sets.written : sets.read;
    const Op* replaced = nullptr;
    for (const Op& op : s.ops) {
      if (!op.to.count || op.to.file != r.file || op.to.index >= r.index + r.count || r.index >= op.to.index + op.to.count) continue;
      const uint64_t common = r.file == File::scalar ? 1 : lanes & op.lanes;
      if (!common || !(op.to.bytes & r.bytes)) continue;
      if (write && replaces(f, op)) {
        replaced = &op;
        continue;
      }
      premature(w, s, i, op, r, write, r.file == File::scalar ? -1 : std::countr_zero(common));
    }
    if (replaced) dead_load(w, i, *replaced);
  }

  // A load of the same ordered class writes after the one before it.
  bool replaces(const Facts& f, const Op& op) const { return writes_after(f, watch_.facts[*op.insn], gfx9_); }

  void dead_load(const Wave& w, const Insn& i, const Op& op) {
    Finding* found = watch_.findings.add(w, i, op.insn, "wait", "C.4 dead load", Severity::warning, Certainty::compiler_only);
    if (!found) return;
    found->reg = name(op.to, op.to.index);
    found->text = found->reg + " is loaded again before the first load was waited for";
    found->mend = "remove the first load, or wait and use it";
  }

  std::string name(const Ref& r, uint32_t number) const {
    return r.file == File::vgpr ? vgpr_name(launch_, number) : sgpr_name(launch_, number);
  }

  void premature(const Wave& w, const WaveState& s, const Insn& i, const Op& op, const Ref& r, bool write, int lane) {
    const char* rule = op.delivered ? "C.4 FLAT" : write ? "C.4 WAW" : "C.4 RAW";
    Finding* found = watch_.findings.add(w, i, op.insn, "wait", rule, op.delivered ? Severity::warning : Severity::error, Certainty::isa_and_compiler);
    if (!found) return;
    found->reg = name(r, std::max(r.index, op.to.index));
    found->lane = lane;
    found->text = found->reg + (write ? " is overwritten" : " is read") + " before the data of the first instruction has provably arrived";
    found->mend = "needs " + needed(s, op) + " before this line";
    if (op.delivered) {
      found->text += ": a flat access counts on both counters, and only that no lane went to the other memory this time makes it right";
      found->mend += ", or a global or DS instruction in place of the flat one";
      return;
    }
    explain(s, op, found);
  }

  // The waits that would have proved it: "vmcnt(2) or lower".
  std::string needed(const WaveState& s, const Op& op) const {
    std::string text;
    for (int c = 0; c < kCounters; ++c) {
      if (!(op.counters >> c & 1)) continue;
      const uint64_t n = in_order(op.order[c]) ? s.issued[c][op.order[c]] - op.number[c] : 0;
      text += (text.empty() ? "" : " and ") + std::string(kCounterNames[c]) + "(" + std::to_string(n) + ")" + (n ? " or lower" : "");
    }
    return text;
  }

  // What the last wait had to do with it.
  void explain(const WaveState& s, const Op& op, Finding* found) {
    if (!s.last_wait) return;
    const Facts& f = watch_.facts[*s.last_wait];
    const std::string where = launch_.program->line(*s.last_wait);
    const std::string last = "; the last wait (" + (where.empty() ? std::string(s.last_wait->text) : where) + ") ";
    bool counted = false, unordered = false;
    for (int c = 0; c < kCounters; ++c) {
      if (!(op.counters >> c & 1) || !(f.waits >> c & 1)) continue;
      counted = true;
      unordered |= !in_order(op.order[c]) && f.wait[c] > 0;
    }
    if (!counted) found->text += last + "is for another counter";
    else if (unordered) found->text += last + "allows outstanding operations, and this kind returns in any order: only 0 proves it";
    else found->text += last + "came before the instruction or allows too many";
  }

  // ---- LDS -----------------------------------------------------------------------------------

  void record_lds(Wave& w, WaveState& s, const Insn& i, const Facts& f, Accesses accesses, Op& op) {
    const bool any = std::any_of(accesses.begin(), accesses.end(),
                                 [](const MemoryAccess& a) { return a.space == Space::lds && a.write; });
    if (!any) return;
    GroupState& g = groups_[w.group];
    compact(w, g);
    op.record = static_cast<uint32_t>(g.writes.size());
    g.writes.push_back({&i, w.index, s.epoch, 0, false, f.is(kIsDs)});
    for (const MemoryAccess& a : accesses) {
      if (a.space != Space::lds || !a.write) continue;
      for (uint32_t b = 0; b < a.bytes; ++b) {
        const uint32_t byte = static_cast<uint32_t>(a.address) + b;
        g.writer[byte] = op.record;
        if (!f.is(kIsLdsDma)) continue;
        op.lds.emplace_back(byte, a.host[b]);
        a.host[b] = static_cast<uint8_t>(kPending >> (8 * (byte & 3)));
      }
    }
  }

  // Drops the records that every wave has left behind a barrier.
  void compact(const Wave& w, GroupState& g) {
    constexpr size_t kMany = 1 << 16;
    if (g.writes.size() < kMany) return;
    uint32_t oldest = UINT32_MAX;
    for (const Wave& other : w.group->waves)
      if (other.state != State::ended) oldest = std::min(oldest, waves_[&other].epoch);
    std::vector<uint32_t> moved(g.writes.size(), 0);
    std::vector<LdsWrite> kept(1);
    for (size_t k = 1; k < g.writes.size(); ++k) {
      const LdsWrite& r = g.writes[k];
      if (r.done && r.done_epoch < oldest) continue;
      moved[k] = static_cast<uint32_t>(kept.size());
      kept.push_back(r);
    }
    for (uint32_t& id : g.writer) id = moved[id];
    for (const Wave& other : w.group->waves)
      for (Op& op : waves_[&other].ops) op.record = moved[op.record];
    g.writes = std::move(kept);
  }

  void lds_accesses(const Wave& w, const Insn& i, const Facts& f, Accesses accesses) {
    GroupState& g = groups_[w.group];
    const WaveState& s = state(w);
    for (const MemoryAccess& a : accesses) {
      if (a.space != Space::lds) continue;
      uint32_t before = 0;
      for (uint32_t b = 0; b < a.bytes; ++b) {
        const uint32_t id = g.writer[a.address + b];
        if (!id || id == before) continue;
        before = id;
        const LdsWrite& r = g.writes[id];
        if (r.wave == w.index) {
          if (r.done || (r.ordered && f.is(kIsDs))) continue;
          if (a.write && f.is(kIsLdsDma) && watch_.facts[*r.insn].is(kIsLdsDma)) continue;   // in order
          lds_finding(w, i, s, r, a, b, "C.4 LDS DMA", true);
        } else if (r.epoch < s.epoch && !(r.done && r.done_epoch < s.epoch)) {
          lds_finding(w, i, s, r, a, b, "C.4 LDS barrier", false);
        }
      }
    }
  }

  void lds_finding(const Wave& w, const Insn& i, const WaveState& s, const LdsWrite& r, const MemoryAccess& a,
                   uint32_t byte, const char* rule, bool own) {
    Finding* found = watch_.findings.add(w, i, r.insn, "wait", rule, Severity::error,
                                         own ? Certainty::isa_and_compiler : Certainty::inferred);
    if (!found) return;
    found->lane = a.lane;
    found->has_address = true;
    found->address = a.address + byte;
    const Facts& writer = watch_.facts[*r.insn];
    const char* counter = writer.is(kIsDs) ? "lgkmcnt(0)" : "vmcnt(0)";
    if (own) {
      found->text = "LDS byte " + std::to_string(found->address) + " is touched before the first instruction has provably written it";
      found->mend = "needs vmcnt before this line";
      for (const Op& op : s.ops)
        if (op.record && op.insn == r.insn) found->mend = "needs " + needed(s, op) + " before this line";
    } else {
      found->text = "LDS byte " + std::to_string(found->address) + " was written by wave " + std::to_string(r.wave) +
                    ", which went into the barrier without waiting: the barrier alone does not complete the write";
      found->mend = std::string("needs ") + counter + " between the write and s_barrier";
    }
  }

  Watch& watch_;
  LaunchState& launch_;
  bool gfx9_;
  uint64_t most_[kCounters];
  std::unordered_map<const Wave*, WaveState> waves_;
  std::unordered_map<const Group*, GroupState> groups_;
  std::unordered_map<const Insn*, Use> waits_;
  const Wave* last_wave_ = nullptr;
  WaveState* last_ = nullptr;
};

}  // namespace

std::unique_ptr<Observer> make_wait_counts(Watch& watch, LaunchState& launch) {
  return std::make_unique<WaitCounts>(watch, launch);
}

}  // namespace netra
