// What a code object says about its kernels, as JSON: the one ELF parser of the repository, for
// everyone who does not write C++.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "code_object.h"
#include "json.h"
#include "machine.h"
#include "occupancy.h"

namespace netra {
namespace {

uint32_t max_workgroup(const Kernel& kernel, const Target& target) {
  return kernel.meta_max_workgroup != 0 ? kernel.meta_max_workgroup : target.max_workgroup;
}

// By the static LDS, and by the largest workgroup that may be launched.
uint32_t waves_per_simd(const Kernel& kernel, const Target& target) {
  const uint32_t lanes = kernel.descriptor.wave32 ? 32 : 64;
  const uint32_t per_group = (max_workgroup(kernel, target) + lanes - 1) / lanes;
  return occupancy(kernel, target, kernel.descriptor.lds_bytes, per_group).waves;
}

// used: highest register that the code names, plus one. declared: the metadata. allocated: the
// descriptor's granules. What is not known is null.
void registers(json::Writer* json, const char* name, const uint32_t* used, bool has_declared,
               uint32_t declared, const uint32_t* allocated) {
  json->key(name).open('{');
  json->key("used");
  used != nullptr ? json->number(*used) : json->null();
  json->key("declared");
  has_declared ? json->number(declared) : json->null();
  json->key("allocated");
  allocated != nullptr ? json->number(*allocated) : json->null();
  json->close('}');
}

void write_kernel(json::Writer* json, const CodeObject& object, const Kernel& kernel,
                  const Target& target) {
  const Descriptor& d = kernel.descriptor;
  UsedRegisters used;
  std::string error;
  const bool known = used_registers(object, kernel, &used, &error);
  const bool meta = kernel.has_metadata;
  const uint32_t arch_vgprs = std::min(d.accum_offset, d.vgprs_allocated);
  const uint32_t acc_vgprs = d.vgprs_allocated - arch_vgprs;
  json->open('{');
  json->key("name").string(kernel.name);
  registers(json, "vgpr", known ? &used.vgpr : nullptr, meta, kernel.meta_vgprs, &arch_vgprs);
  registers(json, "agpr", known ? &used.agpr : nullptr, meta, kernel.meta_agprs, &acc_vgprs);
  registers(json, "sgpr", known ? &used.sgpr : nullptr, meta, kernel.meta_sgprs,
            d.sgprs_allocated != 0 ? &d.sgprs_allocated : nullptr);
  if (!known) json->key("used_error").string(error);
  json->key("lds").number(d.lds_bytes);
  json->key("scratch").number(d.scratch_bytes);
  json->key("dynamic_stack").boolean(d.dynamic_stack);
  json->key("kernarg").number(d.kernarg_bytes);
  json->key("args").open('[');
  for (const KernelArg& arg : kernel.args) {
    json->open('{');
    json->key("name").string(arg.name);
    json->key("kind").string(arg.value_kind);
    json->key("offset").number(arg.offset);
    json->key("size").number(arg.size);
    json->close('}');
  }
  json->close(']');
  json->key("wave_size").number(d.wave32 ? 32 : 64);
  json->key("max_workgroup").number(max_workgroup(kernel, target));
  json->key("waves_per_simd").number(waves_per_simd(kernel, target));
  json->key("code_bytes").number(kernel.code_size);
  json->key("has_metadata").boolean(meta);
  json->key("kernel_sha256").string(kernel.sha256);
  json->close('}');
}

int inspect(const void* image, size_t size, std::string* text) {
  json::Writer json;
  std::string error;
  int code = 0;
  const auto object = load_code_object(image, size, "<memory>", nullptr, 0, &error, &code);
  json.open('{');
  if (object == nullptr) {
    json.key("error").string(error);
  } else {
    const Target& target = *find_target(object->arch);   // the loader refuses other targets
    json.key("arch").string(object->arch);
    json.key("code_object_version").number(static_cast<uint64_t>(object->version));
    json.key("co_sha256").string(object->sha256);
    json.key("kernels").open('[');
    for (const Kernel& kernel : object->kernels) write_kernel(&json, *object, kernel, target);
    json.close(']');
    forget_program(object.get());
  }
  json.close('}');
  *text = json.text();
  return code;
}

}  // namespace
}  // namespace netra

extern "C" {

// Describes a code object (or an offload bundle with one) as JSON: docs of netra_sim.inspect list
// the keys. Returns 0, or the HIP error that loading it would give; then the document is
// {"error": "..."}. Free it with netraSimFree.
int netraSimInspect(const void* image, size_t size, char** out) {
  if (out == nullptr || (image == nullptr && size != 0)) return 1;   // hipErrorInvalidValue
  *out = nullptr;
  try {
    std::string text;
    const int code = netra::inspect(image, size, &text);
    *out = static_cast<char*>(std::malloc(text.size() + 1));
    if (*out == nullptr) return 2;   // hipErrorOutOfMemory
    std::memcpy(*out, text.c_str(), text.size() + 1);
    return code;
  } catch (const std::bad_alloc&) {
    return 2;
  } catch (...) {
    return 999;   // hipErrorUnknown
  }
}

}  // extern "C"
