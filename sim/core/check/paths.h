// Wait states and waits along every path of a kernel's code, without running it.
#pragma once

#include "code_findings.h"

namespace netra {

struct LaunchState;
class FactsTable;

// Walks from the kernel's entry, and from the functions of the object, over both ways of every
// conditional branch. `launch` needs target, object, kernel and program. A call or a computed jump ends
// a path, as the compiler's own passes have it.
void check_paths(const LaunchState& launch, FactsTable* facts, CodeFindings* findings);

}  // namespace netra
