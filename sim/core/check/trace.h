// What a launch executes, written down: one line per instruction, up to the launch's limit.
#pragma once

#include <memory>

namespace netra {

class Observer;
struct LaunchState;
struct Watch;

std::unique_ptr<Observer> make_trace(Watch& watch, LaunchState& launch);

}  // namespace netra
