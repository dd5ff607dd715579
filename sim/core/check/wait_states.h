// Required wait states: a table of hazards, each a producer, a consumer, how they must be related,
// and how many wait states lie between them at least.
#pragma once

#include <memory>
#include <string_view>

#include "facts.h"

namespace netra {

class Observer;
struct LaunchState;
struct Watch;

// Sets Facts::produces and Facts::consumes.
void mark_hazard_rows(Facts* f, Arch arch, std::string_view name);

std::unique_ptr<Observer> make_wait_states(Watch& watch, LaunchState& launch);

}  // namespace netra
