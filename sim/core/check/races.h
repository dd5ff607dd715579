// Races between waves, and data that a cache hides: what orders two accesses, and what makes the
// first visible to the second.
#pragma once

#include <memory>

namespace netra {

class Observer;
struct LaunchState;
struct Watch;

std::unique_ptr<Observer> make_races(Watch& watch, LaunchState& launch);

}  // namespace netra
