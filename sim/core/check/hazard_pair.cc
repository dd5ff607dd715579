#include "hazard_pair.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "../launch.h"

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

// The register by which two instructions are related; its count is 0 when they are not.
Ref related(Relation how, const Facts& p, const Facts& c, const Overtaken& overtaken) {
  const Ref none{};
  const auto vgpr_meet = [&](const auto& from, int from_count, const auto& to, int to_count,
                             auto from_ok, auto to_ok) -> Ref {
    for (int a = 0; a < from_count; ++a)
      for (int b = 0; b < to_count; ++b)
        if (from[a].file == File::vgpr && overlap(from[a], to[b]) && from_ok(from[a]) && to_ok(to[b])) {
          Ref r = to[b];
          const int end = std::min(from[a].index + from[a].count, to[b].index + to[b].count);
          for (int n = std::max(from[a].index, to[b].index); n < end; ++n) {
            if (&from[0] == &p.written[0] && p.is(kIsMfma) && overtaken(static_cast<size_t>(n))) continue;
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
      return r.count ? r : related(Relation::waw, p, c, overtaken);
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

Severity Miss::severity() const { return wrong ? Severity::error : Severity::warning; }

Certainty Miss::certainty() const {
  return row->certainty;
}

void judge_pair(const Facts& p, const Facts& c, uint64_t rows, const uint64_t (&between)[3],
                const Overtaken& overtaken, const std::function<void(const Miss&)>& told) {
  Miss worst;
  for (; rows; rows &= rows - 1) {
    const Hazard& row = kHazards[__builtin_ctzll(rows)];
    const uint64_t far = between[static_cast<int>(row.count)];
    const uint8_t error = row.error.at(p.passes), warn = row.warn.at(p.passes);
    if (far >= std::max(error, warn)) continue;
    if (row.pair && !row.pair(p, c)) continue;
    const Ref r = related(row.relation, p, c, overtaken);
    if (!r.count) continue;
    const bool wrong = far < error;
    const uint8_t need = wrong ? error : warn;
    if (worst.row && std::string_view(worst.row->id) != row.id) {   // rows of one number are neighbours
      told(worst);
      worst = {};
    }
    if (!worst.row || std::pair(wrong, need) > std::pair(worst.wrong, worst.need)) worst = {&row, r, far, need, warn, wrong};
  }
  if (worst.row) told(worst);
}

void tell(const LaunchState& launch, const Miss& miss, Finding* found) {
  const Hazard& row = *miss.row;
  const Ref& r = miss.ref;
  const uint64_t between = miss.between, need = miss.need;
  const uint8_t more = miss.wrong && miss.warn > miss.need ? miss.warn : 0;
  const auto plural = [](uint64_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  if (r.slot != kImplicit || r.index == kVcc)
    found->reg = r.file == File::vgpr ? vgpr_name(launch, r.index) : sgpr_name(launch, r.index);
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

}  // namespace netra
