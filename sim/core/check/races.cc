#include "races.h"

#include <algorithm>
#include <bit>
#include <string>
#include <unordered_map>

#include "../launch.h"
#include "known_order.h"
#include "observer.h"

namespace netra {
namespace {

constexpr uint64_t kLine = 64;         // bytes that share a history
constexpr size_t kReaders = 4;         // reads that a line remembers; writes are all kept

// Who touched some bytes of a line last.
struct Touch {
  uint64_t bytes = 0;
  const Insn* insn = nullptr;
  uint32_t wave = 0;                   // number in the launch
  uint32_t number = 0;                 // of the instruction in its wave
  Path path = kVectorPath;
  bool write = false;
  uint8_t scope = 0;                   // atomic to: 0 nobody, 1 its workgroup, 2 the device
  bool plain = false;                  // gfx1151: an ordinary aligned store, which may be a flag's
  bool through = false;                // does not stay in the cache of its writer
};
using Line = std::vector<Touch>;

// What an atomic leaves at its address for the one that reads it.
struct Sync {
  Clock order, home;
};
// Takes effect when a wait proves instruction `number` complete.
struct Pending {
  Path path;
  uint32_t number;
  Clock order, home;
};

struct GroupState {
  uint32_t first = 0, count = 0;       // numbers of its waves
  std::vector<Marks> published;        // by barriers
  std::vector<Line> lds;
  std::unordered_map<uint64_t, Sync> sync;
};
struct WaveState {
  GroupState* group = nullptr;
  uint32_t number = 0;
  Progress progress;
  Clock order;                         // complete, by atomics
  Clock home;                          // written back to memory (gfx950)
  Clock seen, seen_home;               // `order` and `home` at the last invalidate of the caches
  Clock below;                         // ... of gl1 (gfx1151), which gl0 sees at its own
  Clock near;                          // the own workgroup's, at the last gl0_inv
  Clock scalar;                        // ... at the last s_dcache_inv
  std::vector<Pending> pending;
};

class Races : public Observer {
 public:
  Races(Watch& watch, LaunchState& launch)
      : watch_(watch), launch_(launch), gfx9_(launch.object->arch == "gfx950"),
        split_(gfx9_ ? launch.kernel->descriptor.rsrc3 >> 16 & 1 : launch.kernel->descriptor.rsrc1 >> 29 & 1) {}

  void start_group(Group& g) override {
    GroupState& s = groups_[&g];
    s = {};
    s.first = next_;
    s.count = static_cast<uint32_t>(g.waves.size());
    s.published.assign(g.waves.size(), {});
    s.lds.resize((g.lds.size() + kLine - 1) / kLine);
    for (Wave& w : g.waves) {
      WaveState& state = waves_[&w];
      state = {};
      state.group = &s;
      state.number = next_++;
      names_.push_back("wave " + std::to_string(w.index) + " of workgroup (" + std::to_string(g.id[0]) + ", " +
                       std::to_string(g.id[1]) + ", " + std::to_string(g.id[2]) + ")");
    }
  }
  void end_group(Group& g) override {
    for (Wave& w : g.waves) waves_.erase(&w);
    groups_.erase(&g);
  }

  void before(Wave& w, const Insn&, const Facts& f) override {
    if (!f.waits) return;
    WaveState& s = waves_[&w];
    s.progress.wait(f);
    std::erase_if(s.pending, [&](const Pending& p) {
      if (p.number > s.progress.marks.done[p.path]) return false;
      s.order = joined(s.order, p.order);
      s.home = joined(s.home, p.home);
      return true;
    });
  }

  void after(Wave& w, const Insn& i, const Facts& f, Accesses accesses) override {
    if (!f.counters && !f.is(kIsVmem | kIsSmem)) return;
    WaveState& s = waves_[&w];
    if (accesses.empty()) caches(s, i, f);
    if (f.counters) s.progress.issue(f, gfx9_);
    if (!accesses.empty()) touched(w, s, i, f, accesses);
  }

  // Whatever a wave knew to be complete, all of the workgroup know now.
  void barrier_released(Group& g) override {
    GroupState& s = groups_[&g];
    Clock order, home, seen, seen_home, scalar;
    for (size_t k = 0; k < g.waves.size(); ++k) {
      const WaveState& x = waves_[&g.waves[k]];
      s.published[k] = x.progress.marks;
      order = joined(order, x.order);
      home = joined(home, x.home);
      seen = joined(seen, x.seen);
      seen_home = joined(seen_home, x.seen_home);
      scalar = joined(scalar, x.scalar);
    }
    for (Wave& w : g.waves) {
      WaveState& x = waves_[&w];
      x.order = order;
      x.home = home;
      x.scalar = scalar;
      if (!split_) x.seen = seen, x.seen_home = seen_home;   // one vector cache for all of them
    }
  }

 private:
  static bool same_group(const WaveState& s, uint32_t wave) { return wave - s.group->first < s.group->count; }

  // Everything that the wave knows to be complete; of itself what its waits prove, on `free` all.
  static Clock snapshot(const WaveState& s, int free = -1) {
    auto own = std::make_shared<std::vector<Known>>();
    for (uint32_t k = 0; k < s.group->count; ++k) {
      const uint32_t wave = s.group->first + k;
      Marks m = wave == s.number ? s.progress.marks : s.group->published[k];
      if (wave == s.number && free >= 0) m.done[static_cast<size_t>(free)] = m.issued;
      if (m.issued) own->push_back({wave, m});
    }
    return joined(own, s.order);
  }

  void caches(WaveState& s, const Insn& i, const Facts&) {
    const std::string_view name = mnemonic_of(i);
    if (name == "buffer_wbl2" && i.sc1) {
      // The L2 of this workgroup, from the next number on; own stores go before it in order.
      auto own = std::make_shared<std::vector<Known>>();
      for (uint32_t k = 0; k < s.group->count; ++k) {
        Marks m = s.group->published[k];
        if (s.group->first + k == s.number) m = s.progress.marks, m.done[kVectorPath] = m.issued;
        own->push_back({s.group->first + k, m});
      }
      s.pending.push_back({kVectorPath, s.progress.marks.issued + 1, nullptr, own});
    } else if (name == "buffer_inv" && i.sc1) {
      s.seen = s.near = snapshot(s);
      s.seen_home = s.home;
    } else if (name == "buffer_inv" && i.sc0) {
      s.near = snapshot(s);
    } else if (name == "buffer_gl1_inv") {
      s.below = snapshot(s);
    } else if (name == "buffer_gl0_inv") {
      s.seen = s.below;
      s.near = snapshot(s);
    } else if (name == "s_dcache_inv") {
      s.scalar = snapshot(s);
    }
  }

  // ---- accesses --------------------------------------------------------------------------------

  Touch touch_of(const WaveState& s, const Insn& i, const Facts& f, const MemoryAccess& a) const {
    Touch t;
    t.insn = &i;
    t.wave = s.number;
    t.number = s.progress.marks.issued;
    t.write = a.write;
    const bool lds = a.space == Space::lds;
    const int counter = lds ? f.is(kIsLdsDma) ? kVm : kLgkm
                        : f.is(kIsSmem) ? kLgkm
                        : f.counters >> kVs & 1 ? kVs : kVm;
    t.path = Progress::path(f, counter, gfx9_);
    const bool small = a.bytes <= 8 && a.address % a.bytes == 0;
    if (f.is(kIsAtomic)) {
      t.scope = 2;
    } else if (!lds && !f.is(kIsSmem) && small) {
      if (gfx9_) t.scope = i.sc1 ? 2 : i.sc0;
      else if (a.write) t.scope = 2, t.plain = true;
      else t.scope = i.sc0 ? 2 : 0;
    }
    t.through = !gfx9_ || f.is(kIsAtomic) || (a.write && i.sc1);
    return t;
  }

  void touched(Wave& w, WaveState& s, const Insn& i, const Facts& f, Accesses accesses) {
    const MemoryAccess* first = nullptr;
    Touch t;
    uint64_t line = 0;
    const auto flush = [&] {
      if (first && t.bytes) put(w, s, f, *first, line, t);
    };
    for (const MemoryAccess& a : accesses) {
      if (a.space == Space::scratch || !a.bytes) continue;
      for (uint64_t at = a.address, end = a.address + a.bytes; at < end;) {
        const uint64_t here = at / kLine, n = std::min(end, (here + 1) * kLine) - at;
        if (!first || here != line || a.space != first->space || a.write != first->write) {
          flush();
          first = &a;
          line = here;
          t = touch_of(s, i, f, a);
        }
        t.bytes |= (n == 64 ? ~0ull : (1ull << n) - 1) << at % kLine;
        at += n;
      }
    }
    flush();
    if (accesses[0].space != Space::scratch && (f.is(kIsAtomic) || !f.is(kIsSmem))) synchronise(w, s, f, accesses, i);
  }

  Line& line_of(WaveState& s, Space space, uint64_t line) {
    if (space == Space::lds) return s.group->lds[line];
    constexpr uint64_t kPage = 64;
    if (page_ == nullptr || line / kPage != page_number_) {
      page_number_ = line / kPage;
      page_ = &pages_[page_number_];
      if (page_->empty()) page_->resize(kPage);
    }
    return (*page_)[line % kPage];
  }

  void put(Wave& w, WaveState& s, const Facts& f, const MemoryAccess& a, uint64_t line, const Touch& t) {
    Line& l = line_of(s, a.space, line);
    size_t readers = 0;
    bool merged = false;
    for (Touch& old : l) {
      readers += !old.write;
      if (old.wave == t.wave && old.number == t.number && old.write == t.write) {
        old.bytes |= t.bytes;
        merged = true;
        continue;
      }
      const uint64_t common = old.bytes & t.bytes;
      if (!common) continue;
      if (old.write || t.write) judge(w, s, f, a, line, common, old, t);
      // What comes after the later one comes after the earlier one too.
      if (t.write || (!old.write && known(s, old))) old.bytes &= ~t.bytes;
    }
    if (merged) return;
    std::erase_if(l, [](const Touch& old) { return !old.bytes; });
    if (!t.write && readers >= kReaders) {
      const auto oldest = std::find_if(l.begin(), l.end(), [](const Touch& old) { return !old.write; });
      if (oldest != l.end()) l.erase(oldest);
    }
    l.push_back(t);
  }

  static bool known(const WaveState& s, const Touch& t) {
    if (t.wave == s.number) return true;
    if (same_group(s, t.wave) && t.number <= s.group->published[t.wave - s.group->first].done[t.path]) return true;
    return covers(s.order, t.wave, t.path, t.number);
  }

  void judge(Wave& w, const WaveState& s, const Facts& f, const MemoryAccess& a, uint64_t line, uint64_t common,
             const Touch& old, const Touch& t) {
    const bool near = same_group(s, old.wave);
    const uint8_t scope = near ? 1 : 2;
    if (old.scope >= scope && t.scope >= scope && !(old.plain && t.plain)) return;
    const uint64_t address = line * kLine + static_cast<uint64_t>(std::countr_zero(common));
    if (known(s, old)) {
      if (a.space == Space::global && old.write) hidden(w, s, f, a, address, near, old, t);
      return;
    }
    // LDS: an atomic's dword read by one that polls it; and what went into the barrier unfinished is
    // the wait check's.
    const bool before_barrier = near && old.number <= s.group->published[old.wave - s.group->first].issued;
    if (a.space == Space::lds && ((old.scope && !t.write) || (before_barrier && old.write))) return;
    race(w, a, address, near, before_barrier, old, t);
  }

  // ---- order by atomics ------------------------------------------------------------------------

  void synchronise(Wave&, WaveState& s, const Facts& f, Accesses accesses, const Insn& i) {
    const bool atomic = f.is(kIsAtomic);
    const bool lds = accesses[0].space == Space::lds;
    const bool load = !atomic && f.is(kIsLoad) && !f.is(kIsLdsDma);
    const bool store = !atomic && f.is(kIsStore);
    // A flag is stored by one lane, or says so by its scope.
    const bool flag = store && !lds && (gfx9_ ? i.sc1 || i.sc0 : accesses.size() == 1);
    if (!atomic && !flag && !(load && (lds ? !s.group->sync.empty() : i.sc0 || i.sc1))) return;
    auto& table = lds ? s.group->sync : sync_;
    Clock mine;
    if (atomic || flag) mine = snapshot(s, lds ? kDsPath : -1);
    const Path path = touch_of(s, i, f, accesses[0]).path;
    Clock order, home;
    for (const MemoryAccess& a : accesses) {
      const uint64_t at = a.address / 4;
      const auto found = table.find(at);
      if ((atomic || load) && found != table.end()) {
        order = joined(order, found->second.order);
        home = joined(home, found->second.home);
      }
      if (!mine) continue;
      Sync& to = table[at];
      to.order = atomic ? joined(to.order, mine) : mine;
      to.home = atomic ? joined(to.home, s.home) : s.home;
    }
    if (order && (load || f.is(kReturns))) s.pending.push_back({path, s.progress.marks.issued, order, home});
  }

  // ---- findings --------------------------------------------------------------------------------

  std::string words(const MemoryAccess& a, uint64_t address) const {
    if (a.space == Space::lds) return "LDS byte " + std::to_string(address);
    return "the byte " + Memory::describe(*launch_.regions, address);
  }
  Finding* report(Wave& w, const MemoryAccess& a, uint64_t address, const Touch& old, const Touch& t, const char* kind,
                  const char* rule, Severity severity, Certainty certainty) {
    Finding* found = watch_.findings.add(w, *t.insn, old.insn, kind, rule, severity, certainty);
    if (!found) return nullptr;
    found->lane = a.lane;
    found->has_address = true;
    found->address = address;
    return found;
  }

  void race(Wave& w, const MemoryAccess& a, uint64_t address, bool near, bool before_barrier, const Touch& old, const Touch& t) {
    const bool lds = a.space == Space::lds;
    // A read that went into the barrier: the other's write is later by a way that nobody measured.
    const bool late_read = before_barrier && !old.write;
    Finding* found = report(w, a, address, old, t, "race", lds ? "D LDS" : near ? "D workgroup" : "D global",
                            late_read ? Severity::warning : Severity::error,
                            late_read ? Certainty::inferred : Certainty::isa_and_compiler);
    if (!found) return;
    const std::string wait = lds ? "s_waitcnt lgkmcnt(0)" : gfx9_ || !old.write ? "s_waitcnt vmcnt(0)" : "s_waitcnt_vscnt null, 0";
    found->text = words(a, address) + (t.write ? " is written here and " : " is read here and ") +
                  (old.write ? "written" : "read") + " by " + names_[old.wave - 1];
    if (before_barrier) {
      found->text += ", which went into the barrier without waiting for that";
      found->mend = "needs " + wait + " between the first instruction and its s_barrier";
    } else if (near) {
      found->text += ", and nothing says which comes first";
      found->mend = "needs " + wait + " and s_barrier between the two, in both waves";
    } else {
      found->text += ", and nothing says which comes first: no atomic, reached after a wait, hands the bytes on";
      found->mend = gfx9_ ? "needs buffer_wbl2 sc1, s_waitcnt vmcnt(0) and an atomic after the first; an atomic sc0 that reads it, "
                            "s_waitcnt vmcnt(0) and buffer_inv sc1 before this line"
                          : "needs s_waitcnt_vscnt null, 0 and an atomic after the first; an atomic glc that reads it, s_waitcnt "
                            "vmcnt(0), buffer_gl1_inv and buffer_gl0_inv before this line";
    }
  }

  // The two are in order; a cache may still show the value from before. Every workgroup counts as
  // being on a compute unit and an XCD of its own: where it really runs nobody promises.
  void hidden(Wave& w, const WaveState& s, const Facts& f, const MemoryAccess& a, uint64_t address, bool near,
              const Touch& old, const Touch& t) {
    const char *rule = nullptr, *mend = nullptr, *why = nullptr;
    const bool own = old.wave == s.number;
    Certainty certainty = Certainty::isa_and_compiler;
    if (f.is(kIsSmem)) {
      if (t.write || covers(s.scalar, old.wave, old.path, old.number)) return;
      rule = "D scalar cache";
      why = "the scalar cache may hold what was there before";
      mend = "needs a wait for the write, then s_dcache_inv before this line; or a vector load";
      certainty = Certainty::inferred;
    } else if (own) {
      return;
    } else if (near) {
      if (!split_ || t.write || t.scope || covers(s.near, old.wave, old.path, old.number)) return;
      rule = gfx9_ ? "D inv" : "D gl0_inv";
      why = gfx9_ ? "the workgroup runs on several compute units (tg_split), each with its own cache"
                  : "the workgroup runs on both compute units of a WGP, each with its own gl0";
      mend = gfx9_ ? "needs buffer_inv sc0 between the barrier and this line" : "needs buffer_gl0_inv between the barrier and this line, or glc here";
      certainty = Certainty::compiler_only;
    } else if (!old.through && !covers(s.home, old.wave, old.path, old.number)) {
      rule = "D wbl2";
      why = "the first instruction's data may still be in the L2 of its XCD";
      mend = "needs buffer_wbl2 sc1 and s_waitcnt vmcnt(0) between the first instruction and the atomic that hands it on, or sc1 on the first";
    } else if (!t.write && t.scope < 2 &&
               !(covers(s.seen, old.wave, old.path, old.number) &&
                 (old.through || covers(s.seen_home, old.wave, old.path, old.number)))) {
      rule = gfx9_ ? "D inv" : "D gl1_inv";
      why = "a cache of this compute unit or XCD may hold what was there before";
      mend = gfx9_ ? "needs buffer_inv sc1 between the atomic and this line, or sc1 here"
                   : "needs buffer_gl1_inv, then buffer_gl0_inv between the atomic and this line, or glc here";
    }
    if (!rule) return;
    Finding* found = report(w, a, address, old, t, "visibility", rule, Severity::error, certainty);
    if (!found) return;
    found->text = words(a, address) + (t.write ? " is written here after " : " is read here after ") + names_[old.wave - 1] +
                  " wrote it, but " + why;
    found->mend = mend;
  }

  Watch& watch_;
  LaunchState& launch_;
  bool gfx9_;
  bool split_;                         // waves of a workgroup may have different vector caches
  uint32_t next_ = 1;
  std::vector<std::string> names_;     // of waves, by number
  std::unordered_map<const Wave*, WaveState> waves_;
  std::unordered_map<const Group*, GroupState> groups_;
  std::unordered_map<uint64_t, std::vector<Line>> pages_;
  std::unordered_map<uint64_t, Sync> sync_;
  std::vector<Line>* page_ = nullptr;
  uint64_t page_number_ = 0;
};

}  // namespace

std::unique_ptr<Observer> make_races(Watch& watch, LaunchState& launch) {
  return std::make_unique<Races>(watch, launch);
}

}  // namespace netra
