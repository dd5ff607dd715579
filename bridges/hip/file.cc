#include "file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

namespace netra::bridge {
namespace {

constexpr off_t kLargestFile = 256 << 20;

struct Closer {
  int file;
  ~Closer() { close(file); }
};

}  // namespace

int read_file(const char* path, const char* what, const char* missing,
              std::vector<uint8_t>* bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return fail(NETRA_ERROR_FILE, "%s: %s%s", path, std::strerror(errno),
                errno == ENOENT ? missing : "");
  const Closer closer{file};
  struct stat info;
  if (fstat(file, &info) != 0)
    return fail(NETRA_ERROR_FILE, "%s: %s", path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return fail(NETRA_ERROR_FILE, "%s: not a regular file", path);
  if (info.st_size > kLargestFile)
    return fail(NETRA_ERROR_FILE, "%s: %lld bytes is too large for %s", path,
                static_cast<long long>(info.st_size), what);
  // Reads to the end rather than to st_size: what is hashed is what is loaded.
  bytes->resize(static_cast<size_t>(info.st_size) + 1);
  size_t used = 0;
  for (;;) {
    if (used == bytes->size()) bytes->resize(2 * used);
    const ssize_t got = read(file, bytes->data() + used, bytes->size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(NETRA_ERROR_FILE, "%s: %s", path, std::strerror(errno));
    if (got == 0) break;
    used += static_cast<size_t>(got);
    if (used > static_cast<size_t>(kLargestFile))
      return fail(NETRA_ERROR_FILE, "%s: grows while it is read", path);
  }
  bytes->resize(used);
  return NETRA_OK;
}

}  // namespace netra::bridge
