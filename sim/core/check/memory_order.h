// Wait counters: in which order memory instructions return, and so what a wait proves. Shared by the
// watched run (wait_counts.cc) and the walk over all paths (paths.cc).
#pragma once

#include "facts.h"

namespace netra {

// Operations that return in the order of issue among themselves; the other kinds return in any
// order. Nothing is known between two kinds.
enum Order : uint8_t { kVmemOrder, kDsOrder, kSmemOrder, kMessageOrder, kFlatOrder, kOrders };
constexpr bool in_order(uint8_t o) { return o == kVmemOrder || o == kDsOrder; }

inline constexpr const char* kCounterNames[] = {"vmcnt", "lgkmcnt", "expcnt", "vscnt"};

// What fits in a counter: an instruction that would exceed it waits for the oldest.
constexpr uint32_t counter_most(int counter, bool gfx9) {
  return counter == kExp ? 7 : counter == kLgkm && gfx9 ? 15 : 63;
}

inline Order order_of(const Facts& f, int counter, bool gfx9) {
  if (f.is(kIsFlat)) return gfx9 ? kFlatOrder : counter == kLgkm ? kDsOrder : kVmemOrder;
  if (f.is(kIsVmem)) return kVmemOrder;
  if (f.is(kIsDs)) return kDsOrder;
  return f.is(kIsSmem) ? kSmemOrder : kMessageOrder;
}

// Whether `later` writes its result after that of `earlier` without a wait.
inline bool writes_after(const Facts& later, const Facts& earlier, bool gfx9) {
  if (!later.counters || later.counters != earlier.counters) return false;
  for (int c = 0; c < kCounters; ++c)
    if (later.counters >> c & 1) {
      const Order order = order_of(later, c, gfx9);
      if (order != order_of(earlier, c, gfx9) || !in_order(order)) return false;
    }
  return true;
}

}  // namespace netra
