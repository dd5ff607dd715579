// libFuzzer's door to the readers of untrusted bytes, and to a launch of what they let through.
//
// NETRA_FUZZ names what an input is:
//   elf      a code object: ELF, notes, metadata, descriptors          (load_code_object)
//   notes    the MessagePack of a metadata note                        (msgpack::parse)
//   bundle   an offload bundle                                         (bundle::select)
//   text     llvm-objdump's text, after a byte that picks an object    (read_disassembly, Program)
//   launch   a code object that is loaded, and every kernel launched, through HIP
// NETRA_FUZZ_OBJECTS: code objects that `text` is bound to, separated by colons.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "bundle.h"
#include "code_object.h"
#include "elf.h"
#include "hip_abi.h"
#include "msgpack.h"
#include "program.h"

extern "C" {
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
int LLVMFuzzerInitialize(int*, char***);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed);

hipError_t hipSetDevice(int);
hipError_t hipMalloc(void**, size_t);
hipError_t hipDeviceSynchronize();
hipError_t hipModuleLoad(hipModule_t*, const char*);
hipError_t hipModuleUnload(hipModule_t);
hipError_t hipModuleGetFunction(hipFunction_t*, hipModule_t, const char*);
hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, hipStream_t, void**, void**);
void netraSimReset();
}

namespace {

using netra::CodeObject;

constexpr size_t kBuffer = 1 << 24;   // what pointer arguments point to

std::string g_kind;
std::vector<std::shared_ptr<CodeObject>> g_objects;
void* g_buffer[2];

std::shared_ptr<CodeObject> read_object(const uint8_t* data, size_t size, const char* name) {
  std::string error;
  int code = 0;
  auto object = netra::load_code_object(data, size, name, nullptr, 0, &error, &code);
  // A refusal must have its sentence and its code.
  if (!object && (error.empty() || code == 0)) std::abort();
  return object;
}

void fuzz_notes(const uint8_t* data, size_t size) {
  netra::msgpack::Value value;
  std::string error;
  if (netra::msgpack::parse(data, size, &value, &error)) (void)netra::msgpack::canonical(value);
  else if (error.empty()) std::abort();
}

void fuzz_bundle(const uint8_t* data, size_t size) {
  (void)netra::bundle::promised_size(data, size);
  for (const char* arch : {"", "gfx950", "gfx1151"}) {
    const uint8_t* entry = data;
    size_t bytes = size;
    std::vector<uint8_t> unpacked;
    std::string error;
    int code = 0;
    if (netra::bundle::select(&entry, &bytes, arch, &unpacked, &error, &code)) {
      // An entry lies within the bytes that it was read from: the file's, or what was packed in it.
      const uint8_t* from = unpacked.empty() ? data : unpacked.data();
      const size_t whole = unpacked.empty() ? size : unpacked.size();
      if (entry < from || bytes > whole || entry + bytes > from + whole) std::abort();
      (void)read_object(entry, bytes, "bundle");
    } else if (error.empty()) {
      std::abort();
    }
  }
}

void fuzz_text(const uint8_t* data, size_t size) {
  if (size == 0 || g_objects.empty()) return;
  const CodeObject& object = *g_objects[data[0] % g_objects.size()];
  std::string error;
  const auto text = netra::read_disassembly(
      std::string(reinterpret_cast<const char*>(data + 1), size - 1), object, &error);
  if (!text) {
    if (error.empty()) std::abort();
    return;
  }
  for (const netra::Kernel& kernel : object.kernels) (void)netra::Program::build(object, kernel, *text);
}

void fuzz_launch(const uint8_t* data, size_t size) {
  // The parser alone tells the kernels' names and arguments.
  const auto object = read_object(data, size, "object");
  if (!object) return;
  const int device = object->arch == "gfx1151";
  hipModule_t module = nullptr;
  if (hipSetDevice(device) != hipSuccess) std::abort();
  // From a file: an image in memory has no length, and is read as far as its headers say.
  const int file = memfd_create("fuzz", 0);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const hipError_t loaded = hipModuleLoad(&module, path.c_str());
  close(file);
  if (loaded == hipSuccess) {
    for (const netra::Kernel& kernel : object->kernels) {
      hipFunction_t function = nullptr;
      if (hipModuleGetFunction(&function, module, kernel.name.c_str()) != hipSuccess) continue;
      // Five pointers, then small numbers: enough for kernels to reach their end.
      std::vector<uint8_t> arguments(kernel.meta_kernarg_bytes % (1 << 20) + 8);
      for (size_t at = 0; at + 8 <= arguments.size(); at += 8) {
        const uint64_t value = at < 40 ? reinterpret_cast<uint64_t>(g_buffer[device]) : 0x8000000080;
        std::memcpy(&arguments[at], &value, 8);
      }
      size_t bytes = arguments.size();
      void* extra[] = {reinterpret_cast<void*>(1), arguments.data(), reinterpret_cast<void*>(2), &bytes,
                       reinterpret_cast<void*>(3)};
      const unsigned block = kernel.meta_max_workgroup ? kernel.meta_max_workgroup : 64;
      (void)hipModuleLaunchKernel(function, 2, 2, 1, block, 1, 1, 64, nullptr, nullptr, extra);
      (void)hipDeviceSynchronize();
      netraSimReset();
    }
    if (hipModuleUnload(module) != hipSuccess) std::abort();
  }
}

}  // namespace

int LLVMFuzzerInitialize(int*, char***) {
  const char* kind = std::getenv("NETRA_FUZZ");
  g_kind = kind ? kind : "";
  if (const char* list = std::getenv("NETRA_FUZZ_OBJECTS")) {
    std::string rest = list;
    while (!rest.empty()) {
      const size_t colon = rest.find(':');
      const std::string path = rest.substr(0, colon);
      std::ifstream file(path, std::ios::binary);
      const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
      auto object = read_object(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), path.c_str());
      if (!object) {
        std::fprintf(stderr, "%s: no code object\n", path.c_str());
        std::exit(4);
      }
      g_objects.push_back(object);
      rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
    }
  }
  if (g_kind == "launch") {
    for (int device = 0; device < 2; ++device)
      if (hipSetDevice(device) != hipSuccess || hipMalloc(&g_buffer[device], kBuffer) != hipSuccess) {
        std::fprintf(stderr, "there are no two devices: set NETRA_SIM_DEVICES\n");
        std::exit(4);
      }
  }
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (g_kind == "elf") (void)read_object(data, size, "object");
  else if (g_kind == "notes") fuzz_notes(data, size);
  else if (g_kind == "bundle") fuzz_bundle(data, size);
  else if (g_kind == "text") fuzz_text(data, size);
  else if (g_kind == "launch") fuzz_launch(data, size);
  else std::fprintf(stderr, "NETRA_FUZZ is none of elf, notes, bundle, text, launch\n"), std::exit(2);
  return 0;
}

// A code object stays one for a while: its length and most of its bytes are kept, and what changes
// is a dword of the code, the descriptor, the metadata or a header.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  std::minstd_rand random(seed);
  const bool object = g_kind == "elf" || g_kind == "launch";
  if (!object || random() % 16 == 0) return LLVMFuzzerMutate(data, size, most);
  netra::elf::File file;
  std::string error;
  if (!netra::elf::parse(data, size, &file, &error)) return LLVMFuzzerMutate(data, size, most);
  struct Range {
    uint64_t offset, size;
  };
  std::vector<Range> code, rest = {{0, 64}};
  for (const auto& s : file.sections) {
    if (s.type == 8 || s.size < 4) continue;   // no bytes in the file
    if (s.name == ".text") {
      // Mostly what runs: the padding behind a kernel is long.
      for (const auto& symbol : file.dynamic_symbols)
        if (symbol.type == netra::elf::kFunction && symbol.size >= 4 && symbol.value >= s.address &&
            symbol.value - s.address <= s.size && symbol.size <= s.size - (symbol.value - s.address))
          code.push_back({s.offset + symbol.value - s.address, symbol.size});
    } else if (s.name == ".rodata" || s.name == ".note" || s.name == ".dynsym" || s.name == ".dynamic") {
      rest.push_back({s.offset, s.size});
    }
  }
  rest.push_back({size / 2, size / 2});
  for (unsigned n = 1 + random() % 4; n; --n) {
    const bool in_code = !code.empty() && random() % 3 != 0;
    const Range r = in_code ? code[random() % code.size()] : rest[random() % rest.size()];
    if (r.size < 4 || r.offset > size || r.size > size - r.offset) continue;
    uint8_t* at = data + r.offset + (in_code ? random() % (r.size / 4) * 4 : random() % (r.size - 3));
    switch (random() % 4) {
      case 0: at[random() % 4] ^= static_cast<uint8_t>(1u << (random() % 8)); break;
      case 1: at[random() % 4] = static_cast<uint8_t>(random()); break;
      case 2: LLVMFuzzerMutate(at, 4, 4); break;
      default: std::memmove(at, data + r.offset + random() % (r.size / 4) * 4, 4);
    }
  }
  return size;
}
