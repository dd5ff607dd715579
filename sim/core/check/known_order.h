// What a wave knows to be complete: of itself by its waits, of others by barriers and atomics.
//
// Every memory instruction of a wave has a number. A path is a counter and an order of return in it
// (hazards of wait counters, section C.4), so "complete up to number n" says all that waits prove.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "facts.h"

namespace netra {

enum Path : uint8_t { kVectorPath, kStorePath, kDsPath, kFlatPath, kFlatDsPath, kScalarPath, kPaths };

struct Marks {
  std::array<uint32_t, kPaths> done{};   // by path: the last number that is provably complete
  uint32_t issued = 0;                   // the last number of all
};

// A wave's own instructions between issue and the wait that proves them complete.
class Progress {
 public:
  Marks marks;

  static Path path(const Facts& f, int counter, bool gfx9) {
    if (counter == kVs) return kStorePath;
    if (f.is(kIsFlat) && gfx9) return counter == kLgkm ? kFlatDsPath : kFlatPath;
    if (counter == kVm) return kVectorPath;
    return f.is(kIsDs | kIsFlat) ? kDsPath : kScalarPath;
  }
  void issue(const Facts& f, bool gfx9) {
    ++marks.issued;
    for (int c = 0; c < kCounters; ++c)
      if (f.counters >> c & 1) {
        std::vector<uint32_t>& q = waiting_[path(f, c, gfx9)];
        q.push_back(marks.issued);
        // A full counter holds the wave back until the oldest is done.
        if (q.size() > (c == kLgkm && gfx9 ? 15u : 63u)) finish(path(f, c, gfx9), q.size() - 1);
      }
  }
  void wait(const Facts& f) {
    static constexpr int kCounterOf[kPaths] = {kVm, kVs, kLgkm, kVm, kLgkm, kLgkm};
    for (int p = 0; p < kPaths; ++p) {
      const int c = kCounterOf[p];
      if (!(f.waits >> c & 1)) continue;
      const bool in_order = p == kVectorPath || p == kStorePath || p == kDsPath;
      if (in_order || f.wait[c] == 0) finish(p, f.wait[c]);
    }
  }

 private:
  void finish(int p, size_t left) {
    std::vector<uint32_t>& q = waiting_[p];
    if (q.size() <= left) return;
    const size_t n = q.size() - left;
    marks.done[static_cast<size_t>(p)] = q[n - 1];
    q.erase(q.begin(), q.begin() + static_cast<std::ptrdiff_t>(n));
  }
  std::vector<uint32_t> waiting_[kPaths];
};

// Marks of many waves, in the order of their numbers; shared, never changed.
struct Known {
  uint32_t wave;
  Marks marks;
};
using Clock = std::shared_ptr<const std::vector<Known>>;

inline Clock joined(const Clock& a, const Clock& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  auto out = std::make_shared<std::vector<Known>>();
  out->reserve(a->size() + b->size());
  auto x = a->begin(), y = b->begin();
  while (x != a->end() || y != b->end()) {
    if (y == b->end() || (x != a->end() && x->wave < y->wave)) {
      out->push_back(*x++);
    } else if (x == a->end() || y->wave < x->wave) {
      out->push_back(*y++);
    } else {
      Known k = *x++;
      for (size_t p = 0; p < kPaths; ++p) k.marks.done[p] = std::max(k.marks.done[p], y->marks.done[p]);
      k.marks.issued = std::max(k.marks.issued, y++->marks.issued);
      out->push_back(k);
    }
  }
  return out;
}
inline bool covers(const Clock& clock, uint32_t wave, Path path, uint32_t number) {
  if (!clock) return false;
  const auto at = std::lower_bound(clock->begin(), clock->end(), wave, [](const Known& k, uint32_t w) { return k.wave < w; });
  return at != clock->end() && at->wave == wave && number <= at->marks.done[path];
}

}  // namespace netra
