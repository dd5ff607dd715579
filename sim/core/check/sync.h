// Barriers: who arrives where, and who waits for nobody.
#pragma once

#include <memory>

namespace netra {

class Observer;
struct LaunchState;
struct Watch;

std::unique_ptr<Observer> make_sync(Watch& watch, LaunchState& launch);

}  // namespace netra
