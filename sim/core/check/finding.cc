#include "finding.h"

#include <algorithm>

#include "../json.h"
#include "../launch.h"
#include "code_findings.h"
#include "facts.h"

namespace netra {
namespace {

const char* certainty_name(Certainty c) {
  static constexpr const char* kNames[] = {"ISA + compiler", "ISA only", "compiler only", "measured",
                                           "inferred"};
  return kNames[static_cast<int>(c)];
}

std::string numbered(const LaunchState& launch, char prefix, uint32_t number) {
  const std::string name = map_name(launch, prefix, number);
  return prefix + std::to_string(number) + (name.empty() ? "" : " (" + name + ")");
}

}  // namespace

Party party_of(const LaunchState& launch, const Insn& i) {
  return {place_of(*launch.object, i.pc), launch.program->line(i), i.text};
}

std::string map_name(const LaunchState& launch, char prefix, uint32_t number, uint32_t past) {
  constexpr uint32_t kReach = 63;   // no tuple of a map is longer
  const Symbol* best = nullptr;
  for (const Symbol& s : launch.object->symbols) {
    if (!s.absolute || s.name.size() < 2 || s.name[0] != prefix || s.name[1] < 'A' || s.name[1] > 'Z') continue;
    if (s.value > number || number - s.value > kReach) continue;
    if (!best || s.value > best->value) best = &s;
  }
  if (!best) return "";
  const uint64_t offset = number - best->value + past;
  return best->name + (offset ? "+" + std::to_string(offset) : "");
}

std::string vgpr_name(const LaunchState& launch, uint32_t row) {
  const Descriptor& d = launch.kernel->descriptor;
  const bool acc = launch.object->arch == "gfx950" && row >= d.accum_offset;
  const uint32_t number = acc ? row - d.accum_offset : row;
  const char prefix = acc ? 'a' : 'v';
  return numbered(launch, prefix, number);
}

std::string sgpr_name(const LaunchState& launch, uint32_t number) {
  switch (number) {
    case kVcc: return "vcc_lo";
    case kVcc + 1: return "vcc_hi";
    case kM0: return "m0";
    case kExec: return "exec_lo";
    case kExec + 1: return "exec_hi";
    case kScc: return "scc";
    default: return numbered(launch, 's', number);
  }
}

std::string Finding::json() const {
  json::Writer j;
  const auto party = [&j](const char* key, const Party& p) {
    j.key(key);
    if (p.place.empty()) {
      j.null();
      return;
    }
    j.open('{');
    j.key("place").string(p.place).key("line").string(p.line).key("text").string(p.text);
    j.close('}');
  };
  j.open('{');
  j.key("kind").string(kind).key("rule").string(rule);
  j.key("severity").string(severity == Severity::error ? "error" : "warning");
  j.key("certainty").string(certainty_name(certainty));
  j.key("kernel").string(kernel).key("text").string(text).key("mend").string(mend);
  party("at", at);
  party("other", other);
  const bool executed = wave != kNoWave;
  j.key("wave");
  if (executed) j.number(wave);
  else j.null();
  j.key("workgroup");
  if (executed) j.open('[').number(group[0]).number(group[1]).number(group[2]).close(']');
  else j.null();
  j.key("lane");
  if (lane < 0) j.null();
  else j.number(static_cast<uint64_t>(lane));
  j.key("register").string(reg);
  j.key("address");
  if (has_address) j.number(address);
  else j.null();
  j.key("count").number(count);
  j.close('}');
  return j.text();
}

bool Finding::same_as(const Finding& f) const {
  return kind == f.kind && rule == f.rule && severity == f.severity && at.place == f.at.place &&
         other.place == f.other.place && kernel == f.kernel;
}

Finding* Findings::add(const Wave& w, const Insn& at, const Insn* other, const char* kind,
                       const char* rule, Severity severity, Certainty certainty) {
  const auto [it, fresh] = index_.try_emplace({kind, rule, &at, other}, all_.size());
  if (!fresh) {
    ++all_[it->second].count;
    return nullptr;
  }
  Finding& f = all_.emplace_back();
  f.kind = kind;
  f.rule = rule;
  f.severity = severity;
  f.certainty = certainty;
  f.kernel = launch_.kernel->name;
  f.at = party_of(launch_, at);
  if (other) f.other = party_of(launch_, *other);
  f.wave = w.index;
  std::copy(w.group->id, w.group->id + 3, f.group);
  return &f;
}

std::vector<Finding> Findings::take() {
  index_.clear();
  // Errors first: a list that is cut off loses warnings.
  std::stable_sort(all_.begin(), all_.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return std::move(all_);
}

}  // namespace netra
