// Reading a file whole.
#pragma once

#include <cstdint>
#include <vector>

#include "netra_bridge.h"

namespace netra::bridge {

// `what` the file is ("a code object") and `missing`, what to do when there is none, are for
// messages. Returns NETRA_OK or NETRA_ERROR_FILE with the thread's error set.
int read_file(const char* path, const char* what, const char* missing,
              std::vector<uint8_t>* bytes);

}  // namespace netra::bridge
