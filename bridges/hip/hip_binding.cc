#include "hip_binding.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <vector>

#include "error.h"

namespace netra::bridge {
namespace {

struct Mapped {
  std::string device_inode;  // as /proc/self/maps prints it: "00:2a 131234"
  std::string path;
};

// Also "libamdhip64-1a2b3c4d.so", as a repaired wheel names its copy.
bool is_hip_library(const std::string& path) {
  static constexpr char kStem[] = "libamdhip64";
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.compare(0, sizeof kStem - 1, kStem) == 0 && name.find(".so") != std::string::npos;
}

// Every libamdhip64 that is mapped, once per file. The inode decides, not the path: two names of
// one file are one library, two copies of one file are two.
std::vector<Mapped> mapped_hip_libraries() {
  std::vector<Mapped> found;
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    std::istringstream fields(line);
    std::string range, mode, offset, device, inode, path;
    fields >> range >> mode >> offset >> device >> inode >> std::ws;
    std::getline(fields, path);
    static constexpr char kDeleted[] = " (deleted)";
    const size_t cut = sizeof kDeleted - 1;
    if (path.size() > cut && path.compare(path.size() - cut, cut, kDeleted) == 0)
      path.resize(path.size() - cut);
    if (!is_hip_library(path)) continue;
    const std::string key = device + " " + inode;
    bool known = false;
    for (const Mapped& other : found) known = known || other.device_inode == key;
    if (!known) found.push_back({key, path});
  }
  return found;
}

// Compared by stat of both paths: on an overlay file system the inode in the maps is another one.
bool same_file(const std::string& a, const std::string& b) {
  if (a == b) return true;
  struct stat sa, sb;
  return stat(a.c_str(), &sa) == 0 && stat(b.c_str(), &sb) == 0 && sa.st_dev == sb.st_dev &&
         sa.st_ino == sb.st_ino;
}

bool exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0 ? value : nullptr;
}

// What to open when nothing is mapped, in the order to try.
std::vector<std::string> candidates() {
  std::vector<std::string> list;
  const char* rocm = environment("ROCM_PATH");
  for (const char* root : {rocm, "/opt/rocm"}) {
    if (root == nullptr) continue;
    for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"}) {
      const std::string path = std::string(root) + "/lib/" + name;
      if (exists(path)) list.push_back(path);
    }
  }
  for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"})
    list.push_back(name);
  return list;
}

void* open_library(const std::string& path) {
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

const char* open_error() {
  const char* text = dlerror();
  return text != nullptr ? text : "unknown error";
}

// Chooses and opens the library; null with the error set on failure.
void* choose(const char* asked, std::string* path) {
  const std::vector<Mapped> mapped = mapped_hip_libraries();
  if (mapped.size() > 1) {
    fail(NETRA_ERROR_LIBRARY,
         "two HIP libraries are mapped in this process: %s and %s. A stream of one is unknown to "
         "the other (launches would return 709). Make every user load the same one, usually "
         "torch's: import torch first, and keep the other off LD_LIBRARY_PATH",
         mapped[0].path.c_str(), mapped[1].path.c_str());
    return nullptr;
  }
  if (mapped.size() == 1) {
    if (asked != nullptr && !same_file(asked, mapped[0].path)) {
      fail(NETRA_ERROR_LIBRARY,
           "asked for the HIP library %s, but this process has %s mapped already. One process can "
           "use one of them: leave the argument out, or use a fresh process",
           asked, mapped[0].path.c_str());
      return nullptr;
    }
    *path = mapped[0].path;
    void* handle = open_library(*path);
    if (handle == nullptr)
      fail(NETRA_ERROR_LIBRARY, "the HIP library %s is mapped, but cannot be opened: %s",
           path->c_str(), open_error());
    return handle;
  }
  const char* chosen = asked != nullptr ? asked : environment("NETRA_HIP_LIBRARY");
  if (chosen != nullptr) {
    *path = chosen;
    void* handle = open_library(*path);
    if (handle == nullptr)
      fail(NETRA_ERROR_LIBRARY, "cannot open the HIP library %s%s: %s", chosen,
           asked != nullptr ? "" : " ($NETRA_HIP_LIBRARY)", open_error());
    return handle;
  }
  std::string tried;
  for (const std::string& candidate : candidates()) {
    if (void* handle = open_library(candidate)) {
      *path = candidate;
      return handle;
    }
    const char* reason = open_error();
    // A file that is there and does not open is worth telling; names not found are all alike.
    if (candidate[0] == '/') tried += "; " + candidate + ": " + reason;
  }
  fail(NETRA_ERROR_LIBRARY,
       "no HIP library: none is mapped in this process, NETRA_HIP_LIBRARY is not set, and ROCm's "
       "libamdhip64.so was not found%s. Install ROCm, or ask for the simulator's library by path",
       tried.c_str());
  return nullptr;
}

struct Resolver {
  void* library;
  const char* path;
  const char* missing = nullptr;

  template <typename F>
  void get(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (function == nullptr && missing == nullptr) missing = name;
  }
};

std::unique_ptr<Hip> bind(void* library, const std::string& path) {
  auto hip = std::make_unique<Hip>();
  Resolver resolve{library, path.c_str()};
  resolve.get(hip->init, "hipInit");
  resolve.get(hip->get_device_count, "hipGetDeviceCount");
  resolve.get(hip->get_device, "hipGetDevice");
  resolve.get(hip->set_device, "hipSetDevice");
  resolve.get(hip->runtime_version, "hipRuntimeGetVersion");
  resolve.get(hip->module_load_data, "hipModuleLoadData");
  resolve.get(hip->module_unload, "hipModuleUnload");
  resolve.get(hip->module_get_function, "hipModuleGetFunction");
  resolve.get(hip->func_get_attribute, "hipFuncGetAttribute");
  resolve.get(hip->module_launch, "hipModuleLaunchKernel");
  resolve.get(hip->stream_is_capturing, "hipStreamIsCapturing");
  resolve.get(hip->pointer_attributes, "hipPointerGetAttributes");
  resolve.get(hip->pointer_attribute, "hipPointerGetAttribute");
  resolve.get(hip->error_name, "hipGetErrorName");
  resolve.get(hip->error_string, "hipGetErrorString");
  resolve.get(hip->get_last_error, "hipGetLastError");
  // The plain name is the old structure in every library that has both.
  const auto current = dlsym(library, "hipGetDevicePropertiesR0600");
  hip->old_properties = current == nullptr;
  if (current != nullptr)
    hip->get_properties = reinterpret_cast<decltype(hip->get_properties)>(current);
  else
    resolve.get(hip->get_properties, "hipGetDeviceProperties");
  if (resolve.missing != nullptr) {
    fail(NETRA_ERROR_LIBRARY, "%s is no usable HIP library: it has no %s", path.c_str(),
         resolve.missing);
    return nullptr;
  }
  hip->simulated = dlsym(library, "netraSimInspect") != nullptr;
  // Report the file, also when a bare name was found by the loader.
  Dl_info info;
  const bool located = dladdr(reinterpret_cast<void*>(hip->module_launch), &info) != 0;
  hip->path = located && info.dli_fname != nullptr ? info.dli_fname : path;
  return hip;
}

std::mutex g_mutex;
// Set once and never freed: contexts point to it, and other threads may still launch while the
// destructors of this library run at exit.
const Hip* g_hip;

}  // namespace

void Hip::describe(int error, char* text, size_t size) const {
  const char* name = error_name(error);
  const char* meaning = error_string(error);
  const char* note = "";
  if (error == kHipErrorContextIsDestroyed)
    note = "; usually: the stream comes from another copy of libamdhip64";
  else if (error == kHipErrorIllegalAddress || error == kHipErrorLaunchFailure)
    note = "; this may be the fault of a kernel that was launched earlier";
  std::snprintf(text, size, "%s (%d): %s%s", name != nullptr ? name : "unknown HIP error", error,
                meaning != nullptr ? meaning : "", note);
}

const Hip* bind_hip(const char* asked) {
  if (asked != nullptr && *asked == 0) asked = nullptr;
  const std::lock_guard<std::mutex> lock(g_mutex);
  std::string path;
  if (g_hip != nullptr) {
    // A second copy may have been mapped since; it would be found here, by name.
    return choose(asked, &path) != nullptr ? g_hip : nullptr;
  }
  void* library = choose(asked, &path);
  if (library == nullptr) return nullptr;
  g_hip = bind(library, path).release();
  return g_hip;
}

}  // namespace netra::bridge
