// Findings about code that nobody ran: no wave, workgroup or lane.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "../launch.h"
#include "finding.h"

namespace netra {

inline constexpr uint32_t kNoWave = UINT32_MAX;   // Finding::wave of such a finding

class CodeFindings {
 public:
  explicit CodeFindings(const LaunchState& launch) : launch_(launch) {}

  // The finding of this key, for the caller to fill; null when it is known already.
  Finding* add(const Insn& at, const Insn* other, const char* kind, const std::string& rule, Severity severity,
               Certainty certainty) {
    const auto [it, fresh] = index_.try_emplace({kind, rule, &at, other}, all_.size());
    if (!fresh) return nullptr;
    Finding& f = all_.emplace_back();
    f.kind = kind;
    f.rule = rule;
    f.severity = severity;
    f.certainty = certainty;
    f.kernel = launch_.kernel->name;
    f.at = party_of(launch_, at);
    if (other) f.other = party_of(launch_, *other);
    f.wave = kNoWave;
    return &f;
  }

  std::vector<Finding> take() {   // errors first
    std::stable_sort(all_.begin(), all_.end(), [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
    return std::move(all_);
  }

 private:
  const LaunchState& launch_;
  std::map<std::tuple<std::string, std::string, const Insn*, const Insn*>, size_t> index_;
  std::vector<Finding> all_;
};

}  // namespace netra
