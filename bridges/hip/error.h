// The calling thread's last error: a fixed buffer, so that reporting one allocates nothing.
#pragma once

#include "netra_bridge.h"

namespace netra::bridge {

// Stores the text (printf's format; cut at 2 KiB) and returns `status`.
__attribute__((format(printf, 2, 3))) netra_status fail(netra_status status, const char* format,
                                                        ...);

// The same for a HIP call that returned `code`.
__attribute__((format(printf, 3, 4))) netra_status fail_hip(netra_status status, int code,
                                                            const char* format, ...);

const char* last_error();
int last_hip_error();

}  // namespace netra::bridge
