// What a launch moves and occupies, added up: memory, LDS banks, matrix passes, barriers, occupancy.
#pragma once

#include <memory>

namespace netra {

class Observer;
struct LaunchState;
struct Watch;

std::unique_ptr<Observer> make_counting(Watch& watch, LaunchState& launch);

}  // namespace netra
