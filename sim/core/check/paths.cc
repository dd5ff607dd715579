#include "paths.h"

#include <algorithm>
#include <map>
#include <string>

#include "../launch.h"
#include "../program.h"
#include "hazard_pair.h"
#include "memory_order.h"

namespace netra {
namespace {

bool overlap(const Ref& a, const Ref& b) {
  return a.file == b.file && a.index < b.index + b.count && b.index < a.index + a.count && a.bytes & b.bytes;
}
bool inside(const Ref& inner, const Ref& outer) {
  return inner.file == outer.file && inner.index >= outer.index &&
         inner.index + inner.count <= outer.index + outer.count && !(inner.bytes & ~outer.bytes);
}

class Paths {
 public:
  Paths(const LaunchState& launch, FactsTable* facts, CodeFindings* findings)
      : launch_(launch), program_(*launch.program), facts_(*facts), findings_(*findings),
        gfx9_(launch.object->arch == "gfx950"), reached_(program_.size(), false) {}

  void check() {
    reach();
    for (uint32_t k = 0; k < program_.size(); ++k) {
      if (!reached_[k]) continue;
      const Facts& f = at(k);
      if (f.produces) wait_states(k, f);
      if (f.counters && f.writes) waits(k, f);
    }
  }

 private:
  const Insn& insn(uint32_t k) const { return program_.code()[k]; }
  const Facts& at(uint32_t k) { return facts_[insn(k)]; }

  // What may come next.
  struct Next {
    uint32_t node[2];
    int count = 0;
  };
  Next after(uint32_t k) const {
    Next n;
    const std::string_view name = mnemonic_of(insn(k));
    const bool conditional = begins(name, "s_cbranch_");
    if (begins(name, "s_endpgm") || begins(name, "s_setpc") || begins(name, "s_swappc") || begins(name, "s_rfe") ||
        begins(name, "s_call"))
      return n;
    if ((conditional || name == "s_branch") && insn(k).target >= 0) n.node[n.count++] = static_cast<uint32_t>(insn(k).target);
    if (name != "s_branch" && k + 1 < program_.size()) n.node[n.count++] = k + 1;
    return n;
  }

  void reach() {
    std::vector<uint32_t> todo;
    const auto visit = [&](int64_t k) {
      if (k < 0 || k >= program_.size() || reached_[static_cast<size_t>(k)]) return;
      reached_[static_cast<size_t>(k)] = true;
      todo.push_back(static_cast<uint32_t>(k));
    };
    visit(program_.entry());
    for (const Symbol& s : launch_.object->symbols) {
      const auto same = [&](const Kernel& kernel) { return kernel.name == s.name; };
      if (s.function && std::none_of(launch_.object->kernels.begin(), launch_.object->kernels.end(), same))
        visit(program_.at(launch_.object->load_base + s.value));
    }
    while (!todo.empty()) {
      const uint32_t k = todo.back();
      todo.pop_back();
      const Next n = after(k);
      for (int j = 0; j < n.count; ++j) visit(n.node[j]);
      const std::string_view name = mnemonic_of(insn(k));
      if (begins(name, "s_swappc") || begins(name, "s_call")) visit(k + 1);   // where the call returns
    }
  }

  // ---- wait states ---------------------------------------------------------------------------

  // From one producer on: how little lies between it and an instruction, and which rows of its result
  // a later matrix instruction has taken over.
  struct Near {
    uint32_t node = 0;
    uint64_t between[3] = {};
    VgprSet overtaken;
    bool covers(const Near& o) const {   // at least as bad in every way
      return std::equal(between, between + 3, o.between, [](uint64_t a, uint64_t b) { return a <= b; }) &&
             (overtaken & ~o.overtaken).none();
    }
  };

  void wait_states(uint32_t from, const Facts& producer) {
    std::map<uint32_t, std::vector<Near>> seen;
    std::vector<Near> todo;
    const auto push = [&](Near near) {
      const bool far = gfx9_ ? near.between[0] >= producer.reach : near.between[2] > 0;
      if (far) return;
      std::vector<Near>& known = seen[near.node];
      if (std::any_of(known.begin(), known.end(), [&](const Near& o) { return o.covers(near); })) return;
      known.push_back(near);
      todo.push_back(near);
    };
    const Next first = after(from);
    for (int j = 0; j < first.count; ++j) push({first.node[j], {}, {}});
    while (!todo.empty()) {
      Near near = todo.back();
      todo.pop_back();
      const Facts& f = at(near.node);
      if (const uint64_t rows = producer.produces & f.consumes)
        judge_pair(producer, f, rows, near.between, {nullptr, 0, &near.overtaken}, [&](const Miss& miss) {
          Finding* found = findings_.add(insn(near.node), &insn(from), "wait_states", miss.row->id, miss.severity(), miss.certainty());
          if (found) tell(launch_, miss, found);
        });
      // Counts beyond the reach are all the same, or a loop without vector instructions has no end.
      near.between[0] = std::min<uint64_t>(near.between[0] + f.wait_states, kFarthest);
      if (f.is(kIsValu | kIsMfma | kIsWmma)) {
        near.between[1] = std::min<uint64_t>(near.between[1] + 1, kFarthest);
        if (!f.is(kIsNop)) near.between[2] = std::min<uint64_t>(near.between[2] + 1, kFarthest);
      }
      if (f.is(kIsMfma) && f.writes)
        for (uint32_t n = 0; n < f.written[0].count; ++n) near.overtaken.set(f.written[0].index + n);
      const Next next = after(near.node);
      for (int j = 0; j < next.count; ++j) {
        near.node = next.node[j];
        push(near);
      }
    }
  }

  // ---- waits ---------------------------------------------------------------------------------

  // From one load on: the counters that no wait has proved yet, and how many operations of its kind
  // were issued from it to here. The fewer, the less a wait proves.
  struct Pending {
    uint32_t node = 0;
    uint8_t counters = 0;
    uint32_t issued[kCounters] = {};
    bool covers(const Pending& o) const {
      if (o.counters & ~counters) return false;
      for (int c = 0; c < kCounters; ++c)
        if (o.counters >> c & 1 && issued[c] > o.issued[c]) return false;
      return true;
    }
  };

  void waits(uint32_t from, const Facts& load) {
    const Ref to = load.written[0];
    std::map<uint32_t, std::vector<Pending>> seen;
    std::vector<Pending> todo;
    const auto push = [&](const Pending& p) {
      std::vector<Pending>& known = seen[p.node];
      if (std::any_of(known.begin(), known.end(), [&](const Pending& o) { return o.covers(p); })) return;
      known.push_back(p);
      todo.push_back(p);
    };
    Pending start;
    start.counters = load.counters;
    for (uint32_t& n : start.issued) n = 1;
    const Next first = after(from);
    for (int j = 0; j < first.count; ++j) {
      start.node = first.node[j];
      push(start);
    }
    while (!todo.empty()) {
      Pending p = todo.back();
      todo.pop_back();
      const Facts& f = at(p.node);
      if (f.waits) {
        for (int c = 0; c < kCounters; ++c)
          if (p.counters & f.waits & 1u << c) proved(&p, load, c, f.wait[c]);
      } else if (!touches(from, p, load, to, f)) {
        continue;
      } else if (f.counters) {
        for (int c = 0; c < kCounters; ++c)
          if (p.counters & f.counters & 1u << c && order_of(f, c, gfx9_) == order_of(load, c, gfx9_)) {
            ++p.issued[c];
            if (p.issued[c] > counter_most(c, gfx9_)) proved(&p, load, c, counter_most(c, gfx9_));
          }
      }
      if (!p.counters) continue;
      const Next next = after(p.node);
      for (int j = 0; j < next.count; ++j) {
        p.node = next.node[j];
        push(p);
      }
    }
  }

  void proved(Pending* p, const Facts& load, int c, uint32_t n) const {
    if (in_order(order_of(load, c, gfx9_)) ? n < p->issued[c] : n == 0) p->counters &= static_cast<uint8_t>(~(1u << c));
  }

  // false when the path ends here: the result was used too early, or another load replaces it.
  bool touches(uint32_t from, const Pending& p, const Facts& load, const Ref& to, const Facts& f) {
    for (int k = 0; k < f.reads; ++k)
      if (overlap(f.read[k], to)) return premature(from, p, load, to, f.read[k], "C.4 RAW");
    for (int k = 0; k < f.writes; ++k) {
      if (!overlap(f.written[k], to)) continue;
      if (!writes_after(f, load, gfx9_)) return premature(from, p, load, to, f.written[k], "C.4 WAW");
      if (inside(to, f.written[k])) return false;
    }
    return true;
  }

  bool premature(uint32_t from, const Pending& p, const Facts& load, const Ref& to, const Ref& r, const char* rule) {
    Finding* found = findings_.add(insn(p.node), &insn(from), "wait", rule, Severity::error, Certainty::isa_and_compiler);
    if (!found) return false;
    const uint32_t number = std::max(r.index, to.index);
    found->reg = r.file == File::vgpr ? vgpr_name(launch_, number) : sgpr_name(launch_, number);
    found->text = found->reg + (rule[4] == 'R' ? " is read" : " is overwritten") +
                  " on some path before the data of the first instruction has provably arrived";
    std::string needed;
    for (int c = 0; c < kCounters; ++c) {
      if (!(p.counters >> c & 1)) continue;
      const uint32_t n = in_order(order_of(load, c, gfx9_)) ? p.issued[c] - 1 : 0;
      needed += (needed.empty() ? "" : " and ") + std::string(kCounterNames[c]) + "(" + std::to_string(n) + ")" + (n ? " or lower" : "");
    }
    found->mend = "needs " + needed + " before this line";
    return false;
  }

  const LaunchState& launch_;
  const Program& program_;
  FactsTable& facts_;
  CodeFindings& findings_;
  bool gfx9_;
  std::vector<bool> reached_;
};

}  // namespace

void check_paths(const LaunchState& launch, FactsTable* facts, CodeFindings* findings) {
  Paths(launch, facts, findings).check();
}

}  // namespace netra
