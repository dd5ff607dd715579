// Which observers a checked launch has.
#include "../launch.h"
#include "observer.h"
#include "init.h"
#include "sync.h"
#include "wait_counts.h"
#include "wait_states.h"

namespace netra {

Watch::Watch(const LaunchState& launch, uint32_t lanes)
    : facts(*launch.program, launch.object->arch == "gfx950" ? kGfx950 : kGfx1151, lanes),
      findings(launch) {}

void attach_checks(Watch& watch, LaunchState& launch) {
  watch.observers.push_back(make_wait_states(watch, launch));
  watch.observers.push_back(make_wait_counts(watch, launch));
  watch.observers.push_back(make_init(watch, launch));
  watch.observers.push_back(make_sync(watch, launch));
}

}  // namespace netra
