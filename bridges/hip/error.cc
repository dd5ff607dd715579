#include "error.h"

#include <cstdarg>
#include <cstdio>

namespace netra::bridge {
namespace {

// Touched by failures only: the first touch in a thread may allocate the thread's copy.
struct LastError {
  char text[2048];
  int hip;
};
thread_local LastError t_last;

void store(int hip, const char* format, va_list arguments) {
  std::vsnprintf(t_last.text, sizeof t_last.text, format, arguments);
  t_last.hip = hip;
}

}  // namespace

netra_status fail(netra_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  store(0, format, arguments);
  va_end(arguments);
  return status;
}

netra_status fail_hip(netra_status status, int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  store(code, format, arguments);
  va_end(arguments);
  return status;
}

const char* last_error() { return t_last.text; }
int last_hip_error() { return t_last.hip; }

}  // namespace netra::bridge
