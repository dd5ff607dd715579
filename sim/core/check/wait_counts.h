// Wait counters: a register or LDS byte that a memory instruction has not provably delivered yet
// holds garbage, and whoever touches it is reported.
#pragma once

#include <memory>

namespace netra {

class Observer;
struct LaunchState;
struct Watch;

std::unique_ptr<Observer> make_wait_counts(Watch& watch, LaunchState& launch);

}  // namespace netra
