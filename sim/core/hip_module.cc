// Modules: code objects that a program loads by itself, their functions and globals.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bundle.h"
#include "compressed.h"
#include "elf.h"
#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

constexpr uint64_t kLargestImage = uint64_t{1} << 32;

hipError_t load(hipModule_t* out, const uint8_t* data, size_t size, const std::string& name) {
  Device* device = nullptr;
  hipError_t result = need_device(&device);
  if (result == hipSuccess) result = forbid_during_strict_capture("loading a module");
  if (result != hipSuccess) return result;
  Runtime& rt = Runtime::get();
  const std::string arch = device->target->arch;
  std::string error;
  int code = 0;
  std::vector<uint8_t> unpacked;
  if (!bundle::select(&data, &size, arch, &unpacked, &error, &code)) {
    return fail(code, name + ": " + error);
  }
  auto object = load_code_object(data, size, name, &rt.memory, device->index, &error, &code);
  if (object == nullptr) return fail(code, name + ": " + error);
  auto module = std::make_shared<Module>();   // from here its destructor gives the memory back
  module->object = std::move(object);
  module->device = device->index;
  if (module->object->arch != arch) {
    return fail(hipErrorNoBinaryForGpu, name + ": object " + module->object->arch + ", device " +
                                            arch);
  }
  std::lock_guard lock(rt.mutex);
  for (const Kernel& kernel : module->object->kernels) {
    if (!kernel.has_metadata) continue;
    auto function = std::make_shared<Function>();
    function->module = module;
    function->kernel = &kernel;
    function->name = kernel.name;
    rt.functions[function.get()] = function;
    module->functions[kernel.name] = std::move(function);
  }
  *out = module.get();
  rt.modules[module.get()] = std::move(module);
  return hipSuccess;
}

// Copies what is readable of [image, image + bytes). The image comes without a length, so its
// headers are all that tells how far it reaches; the kernel checks the addresses for us, and a
// truncated image is then a short copy instead of a crash.
std::vector<uint8_t> copy_readable(const void* image, uint64_t bytes) {
  std::vector<uint8_t> copy;
  const int file = memfd_create("netra-image", MFD_CLOEXEC);
  if (file < 0) {
    copy.assign(static_cast<const uint8_t*>(image), static_cast<const uint8_t*>(image) + bytes);
    return copy;
  }
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t wrote = write(file, static_cast<const uint8_t*>(image) + done,
                                std::min<uint64_t>(bytes - done, 1 << 30));
    if (wrote <= 0) break;
    done += static_cast<uint64_t>(wrote);
  }
  copy.resize(done);
  uint64_t read = 0;
  while (read < done) {
    const ssize_t got = pread(file, copy.data() + read, done - read, static_cast<off_t>(read));
    if (got <= 0) break;
    read += static_cast<uint64_t>(got);
  }
  close(file);
  copy.resize(read);
  return copy;
}

hipError_t load_from_memory(hipModule_t* out, const void* image) {
  if (out == nullptr || image == nullptr) {
    return fail(hipErrorInvalidValue, "the module or the image pointer is null");
  }
  std::vector<uint8_t> bytes = copy_readable(image, 64);
  if (compressed::is_compressed(bytes.data(), bytes.size())) {
    const uint64_t promised = compressed::promised_size(bytes.data(), bytes.size());
    if (promised == 0) {
      return fail(hipErrorInvalidImage,
                  "<memory>: the header of the compressed offload bundle does not say how long it "
                  "is (version 1, or damaged); load it with hipModuleLoad");
    }
    if (promised <= kLargestImage) bytes = copy_readable(image, promised);
  } else if (bundle::is_bundle(bytes.data(), bytes.size())) {
    // The table lists the entries; read more until it is whole.
    uint64_t promised = 0;
    for (uint64_t reach = 4096; promised == 0 && reach <= 1 << 20; reach *= 16) {
      bytes = copy_readable(image, reach);
      promised = bundle::promised_size(bytes.data(), bytes.size());
    }
    if (promised <= kLargestImage) bytes = copy_readable(image, promised);
  } else {
    for (int round = 0; round < 2; ++round) {   // the second knows the program headers
      const uint64_t promised = elf::promised_size(bytes.data(), bytes.size());
      if (promised > bytes.size() && promised <= kLargestImage) {
        bytes = copy_readable(image, promised);
      }
    }
  }
  return load(out, bytes.data(), bytes.size(), "<memory>");
}

// 0 or errno.
int read_file(const char* path, std::vector<uint8_t>* bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  int error = 0;
  uint8_t block[1 << 16];
  ssize_t got = 0;
  while ((got = read(file, block, sizeof block)) > 0) {
    bytes->insert(bytes->end(), block, block + got);
  }
  if (got < 0) error = errno;
  close(file);
  return error;
}

std::shared_ptr<Module> find_module(hipModule_t handle) {
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  const auto it = rt.modules.find(handle);
  return it == rt.modules.end() ? nullptr : it->second;
}

hipError_t no_such_module() { return fail(hipErrorInvalidHandle, "the module is not loaded"); }

}  // namespace
}  // namespace netra::hip

using namespace netra;
using namespace netra::hip;

extern "C" {

hipError_t hipModuleLoad(hipModule_t* module, const char* path) {
  return api("hipModuleLoad", [&] {
    if (module == nullptr || path == nullptr) return hipErrorInvalidValue;
    std::vector<uint8_t> bytes;
    const int error = read_file(path, &bytes);
    if (error != 0) {
      return fail(hipErrorFileNotFound, std::string(path) + ": the file cannot be read: " +
                                            std::strerror(error));
    }
    return load(module, bytes.data(), bytes.size(), path);
  });
}

hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  return api("hipModuleLoadData", [&] { return load_from_memory(module, image); });
}

// The options steer a JIT compiler that HIP does not have; ROCm ignores them too.
hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned, int*, void**) {
  return api("hipModuleLoadDataEx", [&] { return load_from_memory(module, image); });
}

// A graph that holds a function of the module reports it when launched.
hipError_t hipModuleUnload(hipModule_t handle) {
  return api("hipModuleUnload", [&] {
    const auto module = find_module(handle);
    if (module == nullptr) return no_such_module();
    Runtime& rt = Runtime::get();
    std::lock_guard work(rt.devices[module->device]->work);
    std::lock_guard lock(rt.mutex);
    for (const auto& [name, function] : module->functions) rt.functions.erase(function.get());
    rt.modules.erase(handle);
    return hipSuccess;
  });
}

hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t handle, const char* name) {
  return api("hipModuleGetFunction", [&] {
    if (function == nullptr || name == nullptr) return hipErrorInvalidValue;
    const auto module = find_module(handle);
    if (module == nullptr) return no_such_module();
    const auto it = module->functions.find(name);
    if (it == module->functions.end()) {
      std::string known;
      for (const auto& [other, unused] : module->functions) {
        known += (known.empty() ? "" : ", ") + other;
      }
      return fail(hipErrorNotFound, module->object->name + ": no kernel " + name + "; it has " +
                                        (known.empty() ? "none" : known));
    }
    *function = it->second.get();
    return hipSuccess;
  });
}

hipError_t hipModuleGetFunctionCount(unsigned* count, hipModule_t handle) {
  return api("hipModuleGetFunctionCount", [&] {
    if (count == nullptr) return hipErrorInvalidValue;
    const auto module = find_module(handle);
    if (module == nullptr) return no_such_module();
    *count = static_cast<unsigned>(module->functions.size());
    return hipSuccess;
  });
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t* pointer, size_t* size, hipModule_t handle,
                              const char* name) {
  return api("hipModuleGetGlobal", [&] {
    if (name == nullptr) return hipErrorInvalidValue;
    const auto module = find_module(handle);
    if (module == nullptr) return no_such_module();
    const auto table = Runtime::get().memory.table();
    for (const Symbol& symbol : module->object->symbols) {
      if (symbol.name != name || symbol.absolute || symbol.function) continue;
      const uint64_t at = module->object->load_base + symbol.value;
      const Region* region = Memory::find(*table, at);
      if (region == nullptr || !region->contains(at, symbol.size)) continue;
      if (pointer != nullptr) *pointer = reinterpret_cast<void*>(at);
      if (size != nullptr) *size = symbol.size;
      return hipSuccess;
    }
    return fail(hipErrorNotFound, module->object->name + ": no global variable " + name);
  });
}

hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute attribute, hipFunction_t handle) {
  return api("hipFuncGetAttribute", [&] {
    if (value == nullptr) return hipErrorInvalidValue;
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    const auto it = rt.functions.find(handle);
    if (it == rt.functions.end()) {
      return fail(hipErrorInvalidDeviceFunction, "the function belongs to no loaded module");
    }
    const auto module = it->second->module.lock();
    const Kernel& kernel = *it->second->kernel;
    const Target& target = *rt.devices[module->device]->target;
    switch (attribute) {
      case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = static_cast<int>(kernel.meta_max_workgroup != 0 ? kernel.meta_max_workgroup
                                                                 : target.max_workgroup);
        return hipSuccess;
      case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = static_cast<int>(kernel.descriptor.lds_bytes);
        return hipSuccess;
      case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = static_cast<int>(kernel.descriptor.scratch_bytes);
        return hipSuccess;
      case HIP_FUNC_ATTRIBUTE_NUM_REGS:
        *value = static_cast<int>(kernel.meta_vgprs);
        return hipSuccess;
      case HIP_FUNC_ATTRIBUTE_PTX_VERSION: case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = target.wave_size == 64 ? 95 : 115;   // major * 10 + minor
        return hipSuccess;
      case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = static_cast<int>(target.lds_bytes -
                                  std::min(target.lds_bytes, kernel.descriptor.lds_bytes));
        return hipSuccess;
      case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = 0;
        return hipSuccess;
    }
    return fail(hipErrorInvalidValue, "function attribute " + std::to_string(attribute) +
                                          " does not exist");
  });
}

}  // extern "C"
