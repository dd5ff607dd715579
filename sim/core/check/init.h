// Reads of what nothing defined: registers, SCC, VCC, M0, LDS and scratch, by lane and byte.
#pragma once

#include <memory>

namespace netra {

class Observer;
struct LaunchState;
struct Watch;

std::unique_ptr<Observer> make_init(Watch& watch, LaunchState& launch);

}  // namespace netra
