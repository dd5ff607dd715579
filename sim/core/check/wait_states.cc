#include "wait_states.h"

#include <algorithm>
#include <unordered_map>

#include "../launch.h"
#include "hazard_pair.h"
#include "observer.h"

namespace netra {
namespace {

// What a wave has executed: totals, and the instructions that may still be too close.
struct History {
  struct Entry {
    const Facts* facts;
    uint64_t before[3];   // totals once it had been executed
    uint32_t number;      // of the matrix instruction
  };
  uint64_t total[3] = {};   // by Count
  std::vector<Entry> recent;
  // Facts of instructions whose registers were chosen at run time, the last few of them.
  std::vector<Facts> own;
  uint32_t next_own = 0;
  std::vector<uint32_t> matrix_writer;   // by row: the number of the matrix instruction that wrote it last
  uint32_t matrices = 0;
};

class WaitStates : public Observer {
 public:
  WaitStates(Watch& watch, LaunchState& launch)
      : watch_(watch), launch_(launch), gfx11_(launch.object->arch == "gfx1151") {}

  void start_group(Group& g) override {
    for (Wave& w : g.waves) {
      history_[&w] = {};
      history_[&w].matrix_writer.assign(w.vgprs + 1, 0);
    }
  }

  void before(Wave& w, const Insn& i, const Facts& facts) override {
    History& h = history(w);
    Facts moved;
    const Facts& f = resolve(w, facts, &moved);
    if (!h.recent.empty()) expire(h);
    if (f.consumes)
      for (const History::Entry& e : h.recent)
        if (const uint64_t rows = e.facts->produces & f.consumes) check(w, i, h, e, f, rows);
    count(h, f);
    if (f.produces) {
      const Facts* kept = &facts;
      if (&f == &moved) {
        h.own.resize(2 * kFarthest);   // more than can be near enough at once
        kept = &(h.own[h.next_own++ % h.own.size()] = moved);
      }
      if (f.is(kIsMfma)) {
        ++h.matrices;
        for (uint32_t n = 0; n < f.written[0].count; ++n) h.matrix_writer[f.written[0].index + n] = h.matrices;
      }
      h.recent.push_back({kept, {h.total[0], h.total[1], h.total[2]}, h.matrices});
    }
  }

 private:
  History& history(const Wave& w) {
    if (last_wave_ != &w) last_wave_ = &w, last_ = &history_[&w];
    return *last_;
  }

  static void count(History& h, const Facts& f) {
    h.total[0] += f.wait_states;
    if (!f.is(kIsValu | kIsMfma | kIsWmma)) return;
    ++h.total[1];
    if (!f.is(kIsNop)) ++h.total[2];
  }

  static uint64_t distance(const History& h, const History::Entry& e, Count c) {
    return h.total[static_cast<int>(c)] - e.before[static_cast<int>(c)];
  }

  void expire(History& h) const {
    std::erase_if(h.recent, [&](const History::Entry& e) {
      return gfx11_ ? distance(h, e, Count::real_valu) > 0 : distance(h, e, Count::states) >= e.facts->reach;
    });
  }

  void check(const Wave& w, const Insn& i, const History& h, const History::Entry& e, const Facts& f, uint64_t rows) {
    const uint64_t between[] = {distance(h, e, Count::states), distance(h, e, Count::valu), distance(h, e, Count::real_valu)};
    judge_pair(*e.facts, f, rows, between, {&h.matrix_writer, e.number, nullptr}, [&](const Miss& miss) {
      const Hazard& row = *miss.row;
      Finding* found = watch_.findings.add(w, i, e.facts->insn, "wait_states", row.id, miss.severity(), miss.certainty());
      if (found) tell(launch_, miss, found);
    });
  }

  Watch& watch_;
  LaunchState& launch_;
  bool gfx11_;
  std::unordered_map<const Wave*, History> history_;
  const Wave* last_wave_ = nullptr;
  History* last_ = nullptr;
};

}  // namespace

std::unique_ptr<Observer> make_wait_states(Watch& watch, LaunchState& launch) {
  return std::make_unique<WaitStates>(watch, launch);
}

}  // namespace netra
