// Two instructions and what lies between them, against the wait-state table: the one judgement that
// the watched run and the walk over all paths share.
#pragma once

#include <bitset>
#include <functional>
#include <vector>

#include "hazard_table.h"

namespace netra {

struct LaunchState;

inline constexpr uint32_t kFarthest = 20;      // the largest figure of the table
using VgprSet = std::bitset<1024>;             // by row of the file, spare rows too

// Which rows of a matrix result a later matrix instruction has written too: the earlier one no
// longer matters there, since the later result comes after it. Told by who wrote each row last, or
// as a set.
struct Overtaken {
  const std::vector<uint32_t>* by_row = nullptr;
  uint32_t number = 0;
  const VgprSet* rows = nullptr;
  bool operator()(size_t row) const { return by_row ? (*by_row)[row] != number : rows && rows->test(row); }
};

// A row of the table that a pair does not keep.
struct Miss {
  const Hazard* row = nullptr;
  Ref ref;                       // the register that relates the two
  uint64_t between = 0;
  uint8_t need = 0, warn = 0;    // what it needs; the largest figure of any source
  bool wrong = false;            // fewer than any source allows
  Severity severity() const;
  Certainty certainty() const;
};

// Judges `rows` (of Facts::produces and consumes) with `between` by Count. Of rows with one number (an
// operand that is both a factor and the addend) the one that misses most is told.
void judge_pair(const Facts& producer, const Facts& consumer, uint64_t rows, const uint64_t (&between)[3],
                const Overtaken& overtaken, const std::function<void(const Miss&)>& told);

// Fills register, text and mend of a finding.
void tell(const LaunchState& launch, const Miss& miss, Finding* found);

}  // namespace netra
