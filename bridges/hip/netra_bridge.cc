#include "netra_bridge.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "abi.h"
#include "code_object.h"
#include "error.h"
#include "file.h"
#include "hip_binding.h"
#include "sha256.h"

namespace nb = netra::bridge;
using nb::fail;
using nb::fail_hip;
using nb::give;
using nb::guarded;

struct netra_kernel {
  const netra_object* object = nullptr;
  nb::KernelImage image;
  nb::Function function = nullptr;
};

struct netra_object {
  netra_context* context = nullptr;
  std::string path;
  std::string sha256;
  nb::Module module = nullptr;
  std::vector<netra_kernel> kernels;  // never resized after loading: handles point into it
};

struct netra_context {
  const nb::Hip* hip = nullptr;
  netra_device_info info{};
  uint64_t lds_limit = 0;
  std::mutex mutex;  // guards objects
  std::vector<std::unique_ptr<netra_object>> objects;
};

namespace {

// Text of a HIP error on the stack.
struct HipText {
  char text[256];
  HipText(const nb::Hip* hip, int error) { hip->describe(error, text, sizeof text); }
};

// Reports a failed HIP call, and takes the error out of HIP's own per-thread slot: torch checks
// that slot after its own launches and would blame one of them.
netra_status hip_failed(const nb::Hip* hip, int error, const char* call, const char* about) {
  hip->get_last_error();
  return fail_hip(NETRA_ERROR_HIP, error, "%s: %s failed with %s", about, call,
                  HipText(hip, error).text);
}

// Makes a device current for a scope. Two calls that read and write thread-local state of HIP.
class DeviceScope {
 public:
  DeviceScope(const nb::Hip* hip, int device) : hip_(hip) {
    error_ = hip->get_device(&before_);
    if (error_ == nb::kHipSuccess && before_ != device) {
      failed_ = "hipSetDevice";
      error_ = hip->set_device(device);
      changed_ = error_ == nb::kHipSuccess;
    }
  }
  ~DeviceScope() {
    if (changed_) hip_->set_device(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  // NETRA_OK, or the error of the call that failed.
  netra_status status(const char* about) const {
    return error_ == nb::kHipSuccess ? NETRA_OK : hip_failed(hip_, error_, failed_, about);
  }

 private:
  const nb::Hip* hip_;
  const char* failed_ = "hipGetDevice";
  int before_ = 0;
  int error_ = 0;
  bool changed_ = false;
};

template <typename T>
T read_field(const uint8_t* properties, size_t offset) {
  T value;
  std::memcpy(&value, properties + offset, sizeof value);
  return value;
}

int describe_device(netra_context* context, int device) {
  const nb::Hip* hip = context->hip;
  // Larger than either structure, and than a later one may be.
  alignas(16) uint8_t raw[8192] = {};
  if (const int error = hip->get_properties(raw, device))
    return hip_failed(hip, error, "hipGetDeviceProperties", "opening a device");
  struct Layout {
    size_t memory, lds, warp, threads, cus, arch;
  };
  static constexpr Layout kR0600{288, 296, 308, 320, 388, 1160};
  static constexpr Layout kR0000{256, 264, 276, 280, 336, 396};
  const Layout& at = hip->old_properties ? kR0000 : kR0600;
  netra_device_info& info = context->info;
  info.struct_size = sizeof info;
  info.device = device;
  info.simulated = hip->simulated ? 1 : 0;
  info.memory_bytes = read_field<uint64_t>(raw, at.memory);
  info.lds_bytes = read_field<uint64_t>(raw, at.lds);
  info.warp_size = read_field<int32_t>(raw, at.warp);
  info.max_threads = read_field<int32_t>(raw, at.threads);
  info.cu_count = read_field<int32_t>(raw, at.cus);
  std::memcpy(info.features, raw + at.arch, sizeof info.features - 1);
  std::snprintf(info.arch, sizeof info.arch, "%.*s",
                static_cast<int>(std::strcspn(info.features, ":")), info.features);
  std::snprintf(info.hip_library, sizeof info.hip_library, "%s", hip->path.c_str());
  hip->runtime_version(&info.runtime_version);
  // Runtimes differ in which of the two fields has a target's whole LDS.
  context->lds_limit = info.lds_bytes;
  if (!hip->old_properties)
    context->lds_limit = std::max(context->lds_limit, read_field<uint64_t>(raw, 1416));
  if (std::strncmp(info.arch, "gfx", 3) != 0)
    return fail(NETRA_ERROR_DEVICE, "device %d calls itself '%s', which is no AMD GPU target (%s)",
                device, info.features, hip->path.c_str());
  return NETRA_OK;
}

bool same_digest(const std::string& have, const char* wanted) {
  if (std::strlen(wanted) != have.size()) return false;
  for (size_t i = 0; i < have.size(); ++i) {
    const char c = wanted[i];
    if (have[i] != (c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c)) return false;
  }
  return true;
}

// Everything that can be known of the file before HIP sees it.
int check_object(const netra_context* context, const netra_load_request& request,
                 const std::vector<uint8_t>& bytes, const std::string& digest,
                 nb::ObjectImage* image) {
  const char* path = request.path;
  // The image is read first: "empty" and "a web page" say more than "another hash".
  if (const int status = nb::read_object(bytes, path, image)) return status;
  if (request.sha256 != nullptr && !same_digest(digest, request.sha256))
    return fail(NETRA_ERROR_HASH,
                "%s: its SHA-256 is %s, expected %s. The file is not the one that was built or "
                "prepared; build again, and restart the process",
                path, digest.c_str(), request.sha256);
  const char* wanted = request.arch != nullptr ? request.arch : context->info.arch;
  if (image->arch != wanted)
    return fail(NETRA_ERROR_ARCH, "%s: this object is for %s, expected %s (device %d is %s)", path,
                image->arch.c_str(), wanted, context->info.device, context->info.features);
  if (!nb::runs_on(image->arch, image->features, context->info.features))
    return fail(NETRA_ERROR_ARCH, "%s: this object is for %s%s, device %d is %s", path,
                image->arch.c_str(), image->features.c_str(), context->info.device,
                context->info.features);
  return NETRA_OK;
}

int load_module(netra_object* object, const std::vector<uint8_t>& bytes, int version) {
  const nb::Hip* hip = object->context->hip;
  const char* path = object->path.c_str();
  if (const int error = hip->module_load_data(&object->module, bytes.data())) {
    object->module = nullptr;
    hip->get_last_error();
    return fail_hip(NETRA_ERROR_HIP, error,
                    "%s: hipModuleLoadData failed with %s (code object version %d, HIP runtime "
                    "%d; runtimes before 6.3 know no version 6)",
                    path, HipText(hip, error).text, version,
                    object->context->info.runtime_version);
  }
  for (netra_kernel& kernel : object->kernels) {
    const char* name = kernel.image.name.c_str();
    if (const int error = hip->module_get_function(&kernel.function, object->module, name))
      return hip_failed(hip, error, ("hipModuleGetFunction(" + kernel.image.name + ")").c_str(),
                        path);
    // A runtime that loads lazily does so now, and not while a stream is being captured.
    int threads = 0;
    if (const int error =
            hip->func_get_attribute(&threads, nb::kMaxThreadsPerBlock, kernel.function))
      return hip_failed(hip, error, ("hipFuncGetAttribute(" + kernel.image.name + ")").c_str(),
                        path);
  }
  return NETRA_OK;
}

int unload_module(netra_object* object) {
  if (object->module == nullptr) return NETRA_OK;
  const nb::Hip* hip = object->context->hip;
  const DeviceScope scope(hip, object->context->info.device);
  if (const int failed = scope.status(object->path.c_str())) return failed;
  const int error = hip->module_unload(object->module);
  object->module = nullptr;
  return error == 0 ? NETRA_OK : hip_failed(hip, error, "hipModuleUnload", object->path.c_str());
}

int query_capture(const nb::Hip* hip, void* stream, int* status) {
  // hipErrorStreamCaptureImplicit: the null stream, while another one captures in global mode.
  static constexpr int kImplicit = 906;
  int value = NETRA_CAPTURE_NONE;
  const int error = hip->stream_is_capturing(stream, &value);
  if (error == kImplicit && stream == nullptr) {
    hip->get_last_error();
    value = NETRA_CAPTURE_NONE;
  } else if (error != 0) {
    return hip_failed(hip, error, "hipStreamIsCapturing", "asking whether a stream is capturing");
  }
  *status = value;
  return NETRA_OK;
}

// Limits that HIP reports as a plain launch failure, or not at all.
int check_launch(const netra_kernel* kernel, const uint32_t grid[3], const uint32_t block[3],
                 uint32_t dynamic_lds) {
  const char* name = kernel->image.name.c_str();
  const netra_context* context = kernel->object->context;
  for (int i = 0; i < 3; ++i)
    if (grid[i] == 0 || block[i] == 0)
      return fail(NETRA_ERROR_LAUNCH,
                  "kernel %s: grid (%u, %u, %u), block (%u, %u, %u): no dimension may be 0", name,
                  grid[0], grid[1], grid[2], block[0], block[1], block[2]);
  const uint64_t threads = static_cast<uint64_t>(block[0]) * block[1];
  if (threads > UINT32_MAX || threads * block[2] > kernel->image.max_threads)
    return fail(NETRA_ERROR_LAUNCH,
                "kernel %s: block (%u, %u, %u) is more than its maximum workgroup of %u", name,
                block[0], block[1], block[2], kernel->image.max_threads);
  if (grid[0] > INT32_MAX || grid[1] > 65535 || grid[2] > 65535 ||
      static_cast<uint64_t>(grid[0]) * block[0] > UINT32_MAX)
    return fail(NETRA_ERROR_LAUNCH,
                "kernel %s: grid (%u, %u, %u) of blocks (%u, %u, %u) is beyond HIP's limits "
                "(2^31-1, 65535, 65535 workgroups, 2^32-1 work-items in x)",
                name, grid[0], grid[1], grid[2], block[0], block[1], block[2]);
  const uint64_t lds = static_cast<uint64_t>(kernel->image.lds_bytes) + dynamic_lds;
  if (context->lds_limit != 0 && lds > context->lds_limit)
    return fail(NETRA_ERROR_LAUNCH, "kernel %s: %llu bytes of LDS, device %d (%s) has %llu", name,
                static_cast<unsigned long long>(lds), context->info.device, context->info.arch,
                static_cast<unsigned long long>(context->lds_limit));
  return NETRA_OK;
}

int launch_failed(const netra_kernel* kernel, int error, void* stream) {
  const nb::Hip* hip = kernel->object->context->hip;
  const char* name = kernel->image.name.c_str();
  hip->get_last_error();
  int capturing = NETRA_CAPTURE_NONE;
  hip->stream_is_capturing(stream, &capturing);
  hip->get_last_error();
  const HipText text(hip, error);
  if (capturing != NETRA_CAPTURE_NONE)
    return fail_hip(NETRA_ERROR_CAPTURE, error,
                    "kernel %s: the launch failed while its stream was being captured, with %s. "
                    "This capture is void: end it, and capture again",
                    name, text.text);
  return fail_hip(NETRA_ERROR_HIP, error, "kernel %s: hipModuleLaunchKernel failed with %s", name,
                  text.text);
}

int check_map(const netra_kernel& kernel, const netra_argument* expected, size_t count) {
  const std::vector<nb::Argument>& have = kernel.image.arguments;
  const char* path = kernel.object->path.c_str();
  const char* name = kernel.image.name.c_str();
  for (size_t i = 0; i < std::max(count, have.size()); ++i) {
    if (i >= count)
      return fail(NETRA_ERROR_KERNARG,
                  "%s: kernel %s has %zu arguments, the caller passes %zu: nothing for %s at offset "
                  "%u",
                  path, name, have.size(), count, have[i].name.c_str(), have[i].offset);
    if (i >= have.size())
      return fail(NETRA_ERROR_KERNARG,
                  "%s: kernel %s has %zu arguments, the caller passes %zu: it has none at offset %u",
                  path, name, have.size(), count, expected[i].offset);
    if (have[i].offset != expected[i].offset || have[i].size != expected[i].size)
      return fail(NETRA_ERROR_KERNARG,
                  "%s: kernel %s: argument %zu (%s) has %u bytes at offset %u, the caller passes %u "
                  "bytes at offset %u",
                  path, name, i, have[i].name.c_str(), have[i].size, have[i].offset,
                  expected[i].size, expected[i].offset);
  }
  return NETRA_OK;
}

}  // namespace

extern "C" {

int netra_abi(void) { return NETRA_BRIDGE_ABI; }
const char* netra_version(void) { return "0.1.0"; }
const char* netra_last_error(void) { return nb::last_error(); }
int netra_last_hip_error(void) { return nb::last_hip_error(); }

const char* netra_status_name(int status) {
  switch (status) {
#define NETRA_NAME(name) \
  case name: return #name;
    NETRA_NAME(NETRA_OK)
    NETRA_NAME(NETRA_ERROR_ARGUMENT)
    NETRA_NAME(NETRA_ERROR_LIBRARY)
    NETRA_NAME(NETRA_ERROR_DEVICE)
    NETRA_NAME(NETRA_ERROR_FILE)
    NETRA_NAME(NETRA_ERROR_IMAGE)
    NETRA_NAME(NETRA_ERROR_HASH)
    NETRA_NAME(NETRA_ERROR_ARCH)
    NETRA_NAME(NETRA_ERROR_SYMBOL)
    NETRA_NAME(NETRA_ERROR_KERNARG)
    NETRA_NAME(NETRA_ERROR_LAUNCH)
    NETRA_NAME(NETRA_ERROR_CAPTURE)
    NETRA_NAME(NETRA_ERROR_HIP)
    NETRA_NAME(NETRA_ERROR_MEMORY)
    NETRA_NAME(NETRA_ERROR_CATALOG)
    NETRA_NAME(NETRA_ERROR_REQUIRED)
    NETRA_NAME(NETRA_DECLINED)
#undef NETRA_NAME
    default: return "unknown netra_status";
  }
}

int netra_open(const char* hip_library, int device, netra_context** context) {
  if (context == nullptr) return fail(NETRA_ERROR_ARGUMENT, "netra_open: context is null");
  return guarded([&]() -> int {
    const nb::Hip* hip = nb::bind_hip(hip_library);
    if (hip == nullptr) return NETRA_ERROR_LIBRARY;
    if (const int error = hip->init(0))
      return hip_failed(hip, error, "hipInit", hip->path.c_str());
    int count = 0;
    if (const int error = hip->get_device_count(&count)) {
      hip->get_last_error();
      return fail_hip(NETRA_ERROR_DEVICE, error, "%s: no device: hipGetDeviceCount said %s",
                      hip->path.c_str(), HipText(hip, error).text);
    }
    if (device < 0 || device >= count)
      return fail(NETRA_ERROR_DEVICE, "no device %d: %s has %d", device, hip->path.c_str(), count);
    auto made = std::make_unique<netra_context>();
    made->hip = hip;
    if (const int status = describe_device(made.get(), device)) return status;
    *context = made.release();
    return NETRA_OK;
  });
}

int netra_close(netra_context* context) {
  if (context == nullptr) return NETRA_OK;
  int status = NETRA_OK;
  for (const auto& object : context->objects)
    if (const int failed = unload_module(object.get())) status = failed;
  delete context;
  return status;
}

int netra_device(const netra_context* context, netra_device_info* info) {
  if (context == nullptr) return fail(NETRA_ERROR_ARGUMENT, "netra_device: context is null");
  return give(context->info, info, "netra_device");
}

int netra_load(netra_context* context, const netra_load_request* request, netra_object** object) {
  if (context == nullptr || request == nullptr || object == nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "netra_load: an argument is null");
  if (request->struct_size < sizeof(netra_load_request) || request->path == nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "netra_load: struct_size is not set, or path is null");
  return guarded([&]() -> int {
    const nb::Hip* hip = context->hip;
    const DeviceScope scope(hip, context->info.device);
    if (const int status = scope.status(request->path)) return status;
    if (request->stream != nullptr) {
      int capturing = NETRA_CAPTURE_NONE;
      if (const int status = query_capture(hip, request->stream, &capturing)) return status;
      if (capturing != NETRA_CAPTURE_NONE)
        return fail(NETRA_ERROR_CAPTURE,
                    "%s: not loaded, the stream is being captured. Prepare before the capture",
                    request->path);
    }
    std::vector<uint8_t> bytes;
    if (const int status = nb::read_file(request->path, "a code object",
                                         ". Build it (make gfx950, make gfx1151)", &bytes))
      return status;
    auto made = std::make_unique<netra_object>();
    made->context = context;
    made->path = request->path;
    made->sha256 = netra::sha256_hex(bytes.data(), bytes.size());
    nb::ObjectImage image;
    if (const int status = check_object(context, *request, bytes, made->sha256, &image))
      return status;
    made->kernels.resize(image.kernels.size());
    for (size_t i = 0; i < image.kernels.size(); ++i) {
      made->kernels[i].object = made.get();
      made->kernels[i].image = std::move(image.kernels[i]);
    }
    const std::lock_guard<std::mutex> lock(context->mutex);
    context->objects.reserve(context->objects.size() + 1);
    if (const int status = load_module(made.get(), bytes, image.version)) {
      // The error that counts is the one that is set already.
      if (made->module != nullptr) hip->module_unload(made->module);
      return status;
    }
    *object = made.get();
    context->objects.push_back(std::move(made));
    return NETRA_OK;
  });
}

int netra_unload(netra_object* object) {
  if (object == nullptr) return NETRA_OK;
  netra_context* context = object->context;
  const std::lock_guard<std::mutex> lock(context->mutex);
  const int status = unload_module(object);
  auto& objects = context->objects;
  objects.erase(std::find_if(objects.begin(), objects.end(),
                             [&](const auto& other) { return other.get() == object; }));
  return status;
}

const char* netra_object_sha256(const netra_object* object) {
  return object != nullptr ? object->sha256.c_str() : "";
}

int netra_find_kernel(const netra_object* object, const char* name, size_t kernarg_size,
                      const netra_argument* arguments, size_t argument_count,
                      const netra_kernel** kernel) {
  if (object == nullptr || name == nullptr || kernel == nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "netra_find_kernel: an argument is null");
  return guarded([&]() -> int {
    for (const netra_kernel& candidate : object->kernels) {
      if (candidate.image.name != name) continue;
      // The map first: it names the argument, where the size is only a number.
      if (arguments != nullptr)
        if (const int status = check_map(candidate, arguments, argument_count)) return status;
      if (candidate.image.kernarg_bytes != kernarg_size)
        return fail(NETRA_ERROR_KERNARG,
                    "%s: kernel %s takes %u bytes of arguments, the caller passes %zu",
                    object->path.c_str(), name, candidate.image.kernarg_bytes, kernarg_size);
      *kernel = &candidate;
      return NETRA_OK;
    }
    std::string names;
    for (const netra_kernel& candidate : object->kernels)
      names += (names.empty() ? "" : ", ") + candidate.image.name;
    return fail(NETRA_ERROR_SYMBOL, "%s: no kernel %s in it; it has %s", object->path.c_str(), name,
                names.c_str());
  });
}

int netra_kernel_describe(const netra_kernel* kernel, netra_kernel_info* info) {
  if (kernel == nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "netra_kernel_describe: kernel is null");
  netra_kernel_info source{};
  source.kernarg_bytes = kernel->image.kernarg_bytes;
  source.lds_bytes = kernel->image.lds_bytes;
  source.scratch_bytes = kernel->image.scratch_bytes;
  source.max_threads = kernel->image.max_threads;
  source.wave_size = kernel->image.wave_size;
  source.argument_count = static_cast<uint32_t>(kernel->image.arguments.size());
  return give(source, info, "netra_kernel_describe");
}

int netra_launch(const netra_kernel* kernel, const uint32_t grid[3], const uint32_t block[3],
                 uint32_t dynamic_lds, const void* kernarg, size_t kernarg_size, void* stream) {
  if (kernel == nullptr || grid == nullptr || block == nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "netra_launch: an argument is null");
  if (kernarg_size != kernel->image.kernarg_bytes || (kernarg == nullptr && kernarg_size != 0))
    return fail(NETRA_ERROR_KERNARG, "kernel %s takes %u bytes of arguments, the caller passes %zu",
                kernel->image.name.c_str(), kernel->image.kernarg_bytes,
                kernarg == nullptr ? 0 : kernarg_size);
  if (const int status = check_launch(kernel, grid, block, dynamic_lds)) return status;
  const netra_context* context = kernel->object->context;
  const nb::Hip* hip = context->hip;
  const DeviceScope scope(hip, context->info.device);
  if (const int status = scope.status(kernel->image.name.c_str())) return status;
  // HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END.
  void* extra[] = {reinterpret_cast<void*>(1), const_cast<void*>(kernarg),
                   reinterpret_cast<void*>(2), &kernarg_size, reinterpret_cast<void*>(3)};
  const int error = hip->module_launch(kernel->function, grid[0], grid[1], grid[2], block[0],
                                       block[1], block[2], dynamic_lds, stream, nullptr,
                                       kernarg_size != 0 ? extra : nullptr);
  return error == nb::kHipSuccess ? NETRA_OK : launch_failed(kernel, error, stream);
}

int netra_capture_status(const netra_context* context, void* stream, int* status) {
  if (context == nullptr || status == nullptr)
    return fail(NETRA_ERROR_ARGUMENT, "netra_capture_status: an argument is null");
  const DeviceScope scope(context->hip, context->info.device);
  if (const int failed = scope.status("asking whether a stream is capturing")) return failed;
  return query_capture(context->hip, stream, status);
}

int netra_pointer(const netra_context* context, const void* address, netra_pointer_info* info) {
  if (context == nullptr) return fail(NETRA_ERROR_ARGUMENT, "netra_pointer: context is null");
  const nb::Hip* hip = context->hip;
  netra_pointer_info source{};
  source.device = -1;
  // hipPointerAttribute_t: type at 0, device at 4; 32 bytes, and room for a longer one.
  alignas(8) uint8_t raw[128] = {};
  const int error = hip->pointer_attributes(raw, address);
  if (error != 0) {
    // Older runtimes answer so for host memory; newer ones say "unregistered".
    hip->get_last_error();
    if (error != nb::kHipErrorInvalidValue)
      return hip_failed(hip, error, "hipPointerGetAttributes", "asking about a pointer");
    return give(source, info, "netra_pointer");
  }
  const int type = read_field<int32_t>(raw, 0);
  if (context->info.runtime_version >= 60000000) {
    // hipMemoryType of HIP 6: 0 unregistered, 1 host, 2 device, 3 managed, 11 unified.
    source.memory = type == 1   ? NETRA_MEMORY_HOST
                    : type == 2 ? NETRA_MEMORY_DEVICE
                    : type == 3 || type == 11 ? NETRA_MEMORY_MANAGED
                                              : NETRA_MEMORY_UNKNOWN;
  } else {
    // HIP 5: 0 host, 1 device, 3 unified, 4 managed.
    source.memory = type == 0   ? NETRA_MEMORY_HOST
                    : type == 1 ? NETRA_MEMORY_DEVICE
                    : type == 3 || type == 4 ? NETRA_MEMORY_MANAGED
                                             : NETRA_MEMORY_UNKNOWN;
  }
  if (source.memory != NETRA_MEMORY_UNKNOWN) {
    source.device = read_field<int32_t>(raw, 4);
    void* pointer = const_cast<void*>(address);
    uint64_t base = 0, size = 0;
    if (hip->pointer_attribute(&base, nb::kRangeStart, pointer) == 0 &&
        hip->pointer_attribute(&size, nb::kRangeSize, pointer) == 0) {
      source.base = base;
      source.size = size;
    } else {
      hip->get_last_error();
    }
  }
  return give(source, info, "netra_pointer");
}

}  // extern "C"
