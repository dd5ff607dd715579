// What every function of the C ABI needs: no exception crosses it, and structures may grow.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "error.h"

namespace netra::bridge {

// Nothing thrown may cross the C ABI.
template <typename F>
int guarded(F body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(NETRA_ERROR_MEMORY, "the host has no memory left");
  } catch (const std::exception& error) {
    return fail(NETRA_ERROR_MEMORY, "unexpected failure: %s", error.what());
  }
}

// Copies `source` into a caller's structure that may be shorter or longer than ours.
template <typename T>
int give(const T& source, T* target, const char* function) {
  if (target == nullptr || target->struct_size < sizeof target->struct_size)
    return fail(NETRA_ERROR_ARGUMENT, "%s: the structure is null or its struct_size is not set",
                function);
  const size_t size = target->struct_size;
  std::memset(static_cast<void*>(target), 0, size);
  std::memcpy(static_cast<void*>(target), &source, std::min(size, sizeof source));
  target->struct_size = size;
  return NETRA_OK;
}

}  // namespace netra::bridge
