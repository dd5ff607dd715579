// The toolchain's llvm-objdump as the decoder: one authority for every encoding.
#include "program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unordered_map>

extern char** environ;

namespace netra {
namespace {

bool executable(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// The directory that set-up chose, and tried with the canary: build/llvm.txt, beside the folder of
// this library. Empty when the library lies elsewhere.
std::string chosen_by_setup() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&executable), &info) || !info.dli_fname) return "";
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::canonical(info.dli_fname, failed);
  if (failed) return "";
  std::ifstream file(self.parent_path().parent_path() / "llvm.txt");
  std::string dir;
  return std::getline(file, dir) ? dir : "";
}

// NETRA_LLVM_BIN, what set-up chose, and without set-up its order: ROCm, Debian's, PATH. Empty when
// there is none.
std::string find_objdump() {
  if (const char* dir = std::getenv("NETRA_LLVM_BIN"); dir && *dir) {
    const std::string path = std::string(dir) + "/llvm-objdump";
    return executable(path) ? path : "";
  }
  if (const std::string dir = chosen_by_setup(); !dir.empty()) {
    const std::string path = dir + "/llvm-objdump";
    if (executable(path)) return path;
  }
  for (const char* dir : {"/opt/rocm/llvm/bin", "/usr/lib/llvm-22/bin", "/usr/lib/llvm-21/bin",
                          "/usr/lib/llvm-20/bin"}) {
    const std::string path = std::string(dir) + "/llvm-objdump";
    if (executable(path)) return path;
  }
  const char* search = std::getenv("PATH");
  std::string rest = search ? search : "";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string path = rest.substr(0, colon) + "/llvm-objdump";
    if (executable(path)) return path;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

// Runs a program with one argument list and collects its standard output. Nothing is written to
// disk: the object is an anonymous file that the child opens through /proc.
bool run(const std::vector<std::string>& argv, std::string* out, std::string* error) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    *error = std::string("pipe: ") + std::strerror(errno);
    return false;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> args;
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  // LD_PRELOAD and LD_LIBRARY_PATH may point at this very library: not for the disassembler.
  std::vector<char*> env;
  for (char** e = environ; *e; ++e)
    if (std::strncmp(*e, "LD_", 3) != 0) env.push_back(*e);
  env.push_back(nullptr);
  pid_t pid = 0;
  const int rc = posix_spawn(&pid, args[0], &actions, nullptr, args.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  if (rc != 0) {
    close(fds[0]);
    *error = argv[0] + ": " + std::strerror(rc);
    return false;
  }
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = read(fds[0], buffer, sizeof buffer);
    if (n > 0) out->append(buffer, static_cast<size_t>(n));
    else if (n == 0 || errno != EINTR) break;
  }
  close(fds[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    *error = argv[0] + " failed on the code object";
    return false;
  }
  return true;
}

// "/home/x/netra/./asm/gfx950/a.s:31" -> "asm/gfx950/a.s:31": objects are built with the source
// root mapped to ".", and the disassembler puts the current directory in front of it.
std::string source_name(const std::string& line) {
  size_t start = line.find("/./");
  start = start == std::string::npos ? 0 : start + 3;
  while (line.compare(start, 2, "./") == 0) start += 2;
  return line.substr(start);
}

// Splits "text // 00001600: C00A0100 00000000 <x+0x4>" in place.
bool split_comment(std::string* line, uint64_t* address, uint32_t* bytes) {
  const size_t slash = line->rfind("// ");
  if (slash == std::string::npos) return false;
  const char* p = line->c_str() + slash + 3;
  char* end = nullptr;
  *address = std::strtoull(p, &end, 16);
  if (end == p || *end != ':') return false;
  p = end + 1;
  *bytes = 0;
  for (;;) {
    while (*p == ' ') ++p;
    std::strtoul(p, &end, 16);
    if (end - p != 8) break;
    *bytes += 4;
    p = end;
  }
  line->resize(slash);
  while (!line->empty() && (line->back() == ' ' || line->back() == '\t')) line->pop_back();
  return *bytes != 0;
}

}  // namespace

std::shared_ptr<Disassembly> read_disassembly(const std::string& out, const CodeObject& object,
                                              std::string* error) {
  auto d = std::make_shared<Disassembly>();
  uint64_t next = 0;
  std::unordered_map<std::string, uint32_t> known;
  uint32_t source = 0;
  size_t at = 0;
  while (at < out.size()) {
    size_t end = out.find('\n', at);
    if (end == std::string::npos) end = out.size();
    std::string line = out.substr(at, end - at);
    at = end + 1;
    if (line.rfind("; ", 0) == 0) {
      const size_t colon = line.rfind(':');
      if (colon == std::string::npos || colon + 1 >= line.size() ||
          line.find_first_not_of("0123456789", colon + 1) != std::string::npos)
        continue;   // "; kernel():"
      const std::string name = source_name(line.substr(2));
      const auto [it, fresh] = known.emplace(name, static_cast<uint32_t>(d->sources.size()));
      if (fresh) d->sources.push_back(name);
      source = it->second;
      continue;
    }
    if (line.empty() || line[0] != '\t') {
      if (!line.empty() && line.back() == ':' && line.find('<') != std::string::npos) source = 0;
      continue;
    }
    TextLine t;
    t.source = source;
    if (!split_comment(&line, &t.address, &t.bytes)) continue;
    const size_t start = line.find_first_not_of('\t');
    t.text = start == std::string::npos ? "" : line.substr(start);
    if (t.address < next || t.address % 4 != 0 || t.bytes > 255 || !object.has_code(t.address, t.bytes)) {
      *error = "the disassembly does not fit the object's code at '" + t.text + "'";
      return nullptr;
    }
    next = t.address + t.bytes;
    d->lines.push_back(std::move(t));
  }
  return d;
}

std::shared_ptr<Disassembly> disassemble(const CodeObject& object, bool wave64,
                                         std::string* error) {
  // A wheel ships the text of its own objects, keyed by their hash: no toolchain is needed then.
  if (const char* dir = std::getenv("NETRA_DISASSEMBLY"); dir && *dir) {
    std::ifstream file(std::string(dir) + "/" + object.sha256 + (wave64 ? ".w64.txt" : ".w32.txt"));
    if (file) {
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      return read_disassembly(text, object, error);
    }
  }
  const std::string objdump = find_objdump();
  if (objdump.empty()) {
    *error = "llvm-objdump (LLVM 20 or later) not found; set NETRA_LLVM_BIN to its directory, or "
             "install it: apt-get install llvm-22";
    return nullptr;
  }
  const int fd = memfd_create("netra-code-object", 0);
  if (fd < 0) {
    *error = std::string("memfd_create: ") + std::strerror(errno);
    return nullptr;
  }
  size_t written = 0;
  while (written < object.image.size()) {
    const ssize_t n = write(fd, object.image.data() + written, object.image.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      *error = std::string("cannot hand the code object to llvm-objdump: ") + std::strerror(errno);
      close(fd);
      return nullptr;
    }
    written += static_cast<size_t>(n);
  }
  std::vector<std::string> argv = {objdump, "-d", "-l", "-z"};
  if (object.arch == "gfx1151" && wave64) argv.push_back("--mattr=+wavefrontsize64");
  argv.push_back("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd));
  std::string out;
  const bool ok = run(argv, &out, error);
  close(fd);
  return ok ? read_disassembly(out, object, error) : nullptr;
}

}  // namespace netra
