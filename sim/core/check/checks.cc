// Which observers a watched launch has.
#include "../launch.h"
#include "bounds.h"
#include "counting.h"
#include "init.h"
#include "observer.h"
#include "races.h"
#include "store_lanes.h"
#include "sync.h"
#include "trace.h"
#include "wait_counts.h"
#include "wait_states.h"

namespace netra {

Watch::Watch(const LaunchState& launch, uint32_t lanes)
    : facts(*launch.program, launch.object->arch == "gfx950" ? kGfx950 : kGfx1151, lanes),
      findings(launch) {}

void attach_observers(Watch& watch, LaunchState& launch) {
  const RunOptions& o = launch.options;
  // First, so that it shows the instruction at which another observer stops the launch.
  if (o.trace_limit) watch.observers.push_back(make_trace(watch, launch));
  if (o.counting) watch.observers.push_back(make_counting(watch, launch));
  if (!o.checked) return;
  watch.observers.push_back(make_wait_states(watch, launch));
  watch.observers.push_back(make_wait_counts(watch, launch));
  watch.observers.push_back(make_init(watch, launch));
  watch.observers.push_back(make_sync(watch, launch));
  watch.observers.push_back(make_races(watch, launch));
  watch.observers.push_back(make_store_lanes(watch));
  watch.observers.push_back(make_bounds(watch));
}

}  // namespace netra
