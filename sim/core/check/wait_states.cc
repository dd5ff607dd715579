#include "wait_states.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <unordered_map>

#include "../launch.h"
#include "hazard_table.h"
#include "observer.h"

namespace netra {
namespace {

bool meets(const Who& who, const Facts& f, std::string_view name) {
  return (!who.any || f.is(who.any)) && !f.is(who.none) && (!who.more || who.more(f, name));
}

bool overlap(const Ref& a, const Ref& b) {
  return a.file == b.file && a.index < b.index + b.count && b.index < a.index + a.count;
}

// Whether a register that a matrix or dot product reads is its addend C.
bool is_addend(const Facts& f, const Ref& r) {
  if (r.slot == kAccumulator) return true;
  if (f.is(kIsSmfmac)) return false;
  return r.slot == 3;
}
bool is_store_data(const Facts& f, const Ref& r) {
  return r.file == File::vgpr && r.slot != kImplicit && !(f.address_slots >> r.slot & 1);
}
bool is_mask(const Facts& f, const Ref& r) {
  if (r.slot == kImplicit) return r.index == kVcc;
  return r.slot < kMaxSlots && f.insn->row && f.insn->row->slot[r.slot].type == Type::mask;
}

// Which matrix instruction wrote a VGPR last. An earlier one that wrote it too no longer matters: the
// later result comes after it.
struct LastMatrix {
  const std::vector<uint32_t>& by_row;
  uint32_t number;
};

// The register by which two instructions are related; its count is 0 when they are not.
Ref related(Relation how, const Facts& p, const Facts& c, const LastMatrix& last) {
  const Ref none{};
  const auto vgpr_meet = [&](const auto& from, int from_count, const auto& to, int to_count,
                             auto from_ok, auto to_ok) -> Ref {
    for (int a = 0; a < from_count; ++a)
      for (int b = 0; b < to_count; ++b)
        if (from[a].file == File::vgpr && overlap(from[a], to[b]) && from_ok(from[a]) && to_ok(to[b])) {
          Ref r = to[b];
          const int end = std::min(from[a].index + from[a].count, to[b].index + to[b].count);
          for (int n = std::max(from[a].index, to[b].index); n < end; ++n) {
            const bool overtaken = &from[0] == &p.written[0] && p.is(kIsMfma) && last.by_row[static_cast<size_t>(n)] != last.number;
            if (overtaken) continue;
            r.index = static_cast<uint16_t>(n);
            return r;
          }
        }
    return none;
  };
  const auto all = [](const Ref&) { return true; };
  const auto reads = [&](auto ok) { return vgpr_meet(p.written, p.writes, c.read, c.reads, all, ok); };
  const auto writes = [&](auto ok) { return vgpr_meet(p.read, p.reads, c.written, c.writes, ok, all); };
  const auto scalar = [&](auto ok) -> Ref {
    for (int a = 0; a < p.writes; ++a)
      for (int b = 0; b < c.reads; ++b)
        if (p.written[a].file == File::scalar && overlap(p.written[a], c.read[b]) && ok(c.read[b])) {
          Ref r = c.read[b];
          r.index = std::max(p.written[a].index, c.read[b].index);
          return r;
        }
    return none;
  };
  const auto same_tuple = [&](const Ref& r) {
    return r.index == p.written[0].index && r.count == p.written[0].count;
  };
  switch (how) {
    case Relation::any: return {File::scalar, 1, 0, 15, kImplicit};
    case Relation::raw: return reads(all);
    case Relation::waw: return vgpr_meet(p.written, p.writes, c.written, c.writes, all, all);
    case Relation::touch: {
      const Ref r = reads(all);
      return r.count ? r : related(Relation::waw, p, c, last);
    }
    case Relation::raw_ab: return reads([&](const Ref& r) { return !is_addend(c, r); });
    case Relation::raw_c: return reads([&](const Ref& r) { return is_addend(c, r); });
    case Relation::c_same: return reads([&](const Ref& r) { return is_addend(c, r) && same_tuple(r); });
    case Relation::c_overlap: return reads([&](const Ref& r) { return is_addend(c, r) && !same_tuple(r); });
    case Relation::war_c: return writes([&](const Ref& r) { return is_addend(p, r); });
    case Relation::war_index: return writes([&](const Ref& r) { return r.slot == 3; });
    case Relation::war_data: return writes([&](const Ref& r) { return is_store_data(p, r); });
    case Relation::raw_source: return reads([](const Ref& r) { return r.slot == 1; });
    case Relation::sgpr: return scalar([](const Ref&) { return true; });
    // EXEC as data and the lane selects have rows of their own.
    case Relation::sgpr_value: {
      const bool lanes = c.is(kIsLaneRead | kIsLaneWrite);
      return scalar([&](const Ref& r) { return !is_mask(c, r) && r.index < kExec && !(lanes && r.slot == 2); });
    }
    case Relation::sgpr_mask: return scalar([&](const Ref& r) { return is_mask(c, r); });
    case Relation::sgpr_select: return scalar([](const Ref& r) { return r.slot == 2; });
    case Relation::sgpr_exec: return scalar([](const Ref& r) { return r.index >= kExec && r.index < kExec + 2; });
    case Relation::vccz:
      return scalar([&](const Ref& r) { return r.slot < kMaxSlots && c.insn->op[r.slot].kind == Kind::special; });
    case Relation::hwreg: {
      const char *a = std::strstr(p.insn->text, "hwreg("), *b = std::strstr(c.insn->text, "hwreg(");
      const bool same = a && b && std::strcspn(a, ",)") == std::strcspn(b, ",)") &&
                        std::strncmp(a, b, std::strcspn(a, ",)")) == 0;
      return same ? Ref{File::scalar, 1, 0, 15, kImplicit} : none;
    }
  }
  return none;
}

constexpr uint32_t kFarthest = 20;   // the largest figure of the table

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

  // The rows by which two instructions may be too close. Of those with one number (an operand that is
  // both a factor and the addend) the one that misses most is told.
  void check(const Wave& w, const Insn& i, const History& h, const History::Entry& e, const Facts& f, uint64_t rows) {
    struct Miss {
      const Hazard* row = nullptr;
      Ref ref;
      uint64_t between = 0;
      uint8_t need = 0, warn = 0;
      bool wrong = false;
    };
    Miss worst;
    const auto flush = [&] {
      if (!worst.row) return;
      const Hazard& row = *worst.row;
      const bool guide = worst.wrong && row.certainty == kIsa && worst.need == worst.warn;
      Finding* found = watch_.findings.add(w, i, e.facts->insn, "wait_states", row.id,
                                           worst.wrong ? Severity::error : Severity::warning, guide ? kIsa : row.certainty);
      if (found) tell(found, row, worst.ref, worst.between, worst.need, worst.wrong && worst.warn > worst.need ? worst.warn : 0);
      worst = {};
    };
    for (; rows; rows &= rows - 1) {
      const Hazard& row = kHazards[__builtin_ctzll(rows)];
      const uint64_t between = distance(h, e, row.count);
      const uint8_t error = row.error.at(e.facts->passes), warn = row.warn.at(e.facts->passes);
      if (between >= std::max(error, warn)) continue;
      if (row.pair && !row.pair(*e.facts, f)) continue;
      const Ref r = related(row.relation, *e.facts, f, {h.matrix_writer, e.number});
      if (!r.count) continue;
      const bool wrong = between < error;
      const uint8_t need = wrong ? error : warn;
      if (worst.row && std::string_view(worst.row->id) != row.id) flush();   // rows of one number are neighbours
      if (!worst.row || std::pair(wrong, need) > std::pair(worst.wrong, worst.need)) worst = {&row, r, between, need, warn, wrong};
    }
    flush();
  }

  void tell(Finding* found, const Hazard& row, const Ref& r, uint64_t between, uint8_t need, uint8_t more) {
    const auto plural = [](uint64_t n, const char* what) {
      return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
    };
    if (r.slot != kImplicit || r.index == kVcc)
      found->reg = r.file == File::vgpr ? vgpr_name(launch_, r.index) : sgpr_name(launch_, r.index);
    const std::string who = found->reg.empty() ? "the second instruction" : found->reg;
    if (row.count == Count::states) {
      found->text = who + " comes " + plural(between, "wait state") + " after the first instruction, and " +
                    row.id + " needs " + std::to_string(need);
      const uint64_t missing = need - between;
      found->mend = plural(missing, "more wait state") + " between the two: s_nop " + std::to_string(missing - 1);
      if (missing > 16) found->mend = plural(missing, "more wait state") + " between the two: s_nop 15 and s_nop " + std::to_string(missing - 17);
      if (more) found->mend += " (one source asks for " + std::to_string(more) + " in all)";
    } else {
      const bool real = row.count == Count::real_valu;
      found->text = who + ": no VALU instruction" + (real ? " other than v_nop" : "") + " lies between the two, and " +
                    row.id + " needs one";
      found->mend = real ? "an independent VALU instruction between the two (v_nop and s_nop do not help)"
                         : "v_nop or an independent VALU instruction between the two (s_nop does not help)";
    }
  }

  Watch& watch_;
  LaunchState& launch_;
  bool gfx11_;
  std::unordered_map<const Wave*, History> history_;
  const Wave* last_wave_ = nullptr;
  History* last_ = nullptr;
};

}  // namespace

namespace {

bool has_file(const Ref* refs, int count, File file) {
  return std::any_of(refs, refs + count, [file](const Ref& r) { return r.file == file; });
}
bool is_scalar(Relation r) { return r >= Relation::sgpr && r <= Relation::vccz; }
// Whether an instruction has a register at all by which it could be related as a producer, or as a
// consumer.
bool offers(Relation r, const Facts& f) {
  if (r == Relation::any || r == Relation::hwreg) return true;
  if (is_scalar(r)) return has_file(f.written.data(), f.writes, File::scalar);
  const bool by_reads = r == Relation::war_c || r == Relation::war_index || r == Relation::war_data;
  return by_reads ? has_file(f.read.data(), f.reads, File::vgpr) : has_file(f.written.data(), f.writes, File::vgpr);
}
bool asks(Relation r, const Facts& f) {
  if (r == Relation::any || r == Relation::hwreg) return true;
  if (is_scalar(r)) return has_file(f.read.data(), f.reads, File::scalar);
  const bool reads = has_file(f.read.data(), f.reads, File::vgpr), writes = has_file(f.written.data(), f.writes, File::vgpr);
  switch (r) {
    case Relation::touch: return reads || writes;
    case Relation::waw: case Relation::war_c: case Relation::war_index: case Relation::war_data: return writes;
    default: return reads;
  }
}

}  // namespace

void mark_hazard_rows(Facts* f, Arch arch, std::string_view name) {
  for (size_t k = 0; k < kHazardRows; ++k) {
    const Hazard& row = kHazards[k];
    if (row.arch != arch) continue;
    if (meets(row.producer, *f, name) && offers(row.relation, *f)) {
      f->produces |= 1ull << k;
      f->reach = std::max({f->reach, row.error.at(f->passes), row.warn.at(f->passes)});
    }
    if (meets(row.consumer, *f, name) && asks(row.relation, *f)) f->consumes |= 1ull << k;
  }
}

std::unique_ptr<Observer> make_wait_states(Watch& watch, LaunchState& launch) {
  return std::make_unique<WaitStates>(watch, launch);
}

}  // namespace netra
