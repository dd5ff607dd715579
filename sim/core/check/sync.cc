#include "sync.h"

#include <string>
#include <unordered_map>

#include "../launch.h"
#include "observer.h"

namespace netra {
namespace {

struct Arrivals {
  const Insn* last = nullptr;
  uint64_t count = 0;
  bool waiting = false;
};

class Sync : public Observer {
 public:
  Sync(Watch& watch, LaunchState& launch) : watch_(watch), launch_(launch) {}

  void start_group(Group& g) override {
    for (Wave& w : g.waves) arrivals_[&w] = {};
  }

  // Before it is carried out: the last arrival releases the others while it runs.
  void before(Wave& w, const Insn& i, const Facts& f) override {
    if (!f.is(kIsBarrier)) return;
    Arrivals& a = arrivals_[&w];
    a.last = &i;
    ++a.count;
    a.waiting = true;
  }

  void barrier_released(Group& g) override {
    const Wave* first = nullptr;
    for (Wave& w : g.waves) {
      Arrivals& a = arrivals_[&w];
      if (!a.waiting) continue;
      a.waiting = false;
      if (!first) {
        first = &w;
        continue;
      }
      const Arrivals& b = arrivals_[first];
      if (a.last != b.last) different(w, *a.last, *first, *b.last);
    }
  }

  // A wave that ended counts as arrived from then on; that it met fewer barriers may be meant.
  void end_group(Group& g) override {
    const Wave *most = nullptr, *least = nullptr;
    for (const Wave& w : g.waves) {
      if (w.state != State::ended) return forget(g);
      if (!most || arrivals_[&w].count > arrivals_[most].count) most = &w;
      if (!least || arrivals_[&w].count < arrivals_[least].count) least = &w;
    }
    if (most && arrivals_[most].count != arrivals_[least].count) {
      const Arrivals &a = arrivals_[most], &b = arrivals_[least];
      Finding* f = watch_.findings.add(*most, *a.last, b.last, "sync", "E unequal", Severity::warning, Certainty::isa_only);
      if (f) {
        f->text = "wave " + std::to_string(most->index) + " met " + std::to_string(a.count) + " barriers and wave " +
                  std::to_string(least->index) + " ended after " + std::to_string(b.count) +
                  ": only that an ended wave counts as arrived lets the others go on";
        f->mend = "let every wave of the workgroup reach every barrier";
      }
    }
    forget(g);
  }

  void stuck(Group& g) override {
    const Wave *waits = nullptr, *runs = nullptr;
    for (const Wave& w : g.waves) {
      if (w.state == State::barrier && !waits) waits = &w;
      if (w.state == State::running && !runs) runs = &w;
    }
    if (!waits) return;
    const Insn& barrier = *arrivals_[waits].last;
    const Insn* elsewhere = runs ? &launch_.program->code()[runs->ip] : nullptr;
    Finding* f = watch_.findings.add(*waits, barrier, elsewhere, "sync", "E deadlock", Severity::error, Certainty::isa_and_compiler);
    if (!f) return;
    f->text = "wave " + std::to_string(waits->index) + " waits at this barrier for ever: ";
    f->text += runs ? "wave " + std::to_string(runs->index) + " never arrives, it is still at the other instruction"
                    : "no wave of the workgroup can go on";
    f->mend = "let every wave of the workgroup reach the barrier";
  }

 private:
  void different(const Wave& w, const Insn& at, const Wave& other, const Insn& there) {
    Finding* f = watch_.findings.add(w, at, &there, "sync", "E barrier", Severity::error, Certainty::inferred);
    if (!f) return;
    f->text = "wave " + std::to_string(w.index) + " meets this barrier while wave " + std::to_string(other.index) +
              " meets the other one: the hardware counts them as the same barrier";
    f->mend = "let all waves of the workgroup take the same way through the barriers";
  }
  void forget(Group& g) {
    for (const Wave& w : g.waves) arrivals_.erase(&w);
  }

  Watch& watch_;
  LaunchState& launch_;
  std::unordered_map<const Wave*, Arrivals> arrivals_;
};

}  // namespace

std::unique_ptr<Observer> make_sync(Watch& watch, LaunchState& launch) {
  return std::make_unique<Sync>(watch, launch);
}

}  // namespace netra
