// Accesses that hardware lets pass in silence although they miss what was meant.
#pragma once

#include <memory>

namespace netra {

class Observer;
struct Watch;

std::unique_ptr<Observer> make_bounds(Watch& watch);

}  // namespace netra
