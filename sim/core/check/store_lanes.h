// Lanes of one store that meet at the same bytes.
#pragma once

#include <memory>

namespace netra {

class Observer;
struct Watch;

std::unique_ptr<Observer> make_store_lanes(Watch& watch);

}  // namespace netra
