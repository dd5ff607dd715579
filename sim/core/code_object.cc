// From the bytes of an ELF file to kernels in memory. Each thing that can be wrong with a file has
// one sentence here; a reader of the message has the file's name and no debugger.

#include "code_object.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "bundle.h"
#include "elf.h"
#include "machine.h"
#include "msgpack.h"
#include "sha256.h"

namespace netra {
namespace {

constexpr int kOutOfMemory = 2, kInvalidImage = 200, kNoBinaryForGpu = 209,
              kInvalidKernelFile = 218, kSymbolNotFound = 302;

struct Mach {
  uint8_t number;     // e_flags[7:0]
  const char* arch;
};

// Every number that LLVM 22 assigns to an amdgcn processor, so that a refusal can name it.
constexpr Mach kMachs[] = {
    {0x20, "gfx600"},         {0x21, "gfx601"},          {0x22, "gfx700"},
    {0x23, "gfx701"},         {0x24, "gfx702"},          {0x25, "gfx703"},
    {0x26, "gfx704"},         {0x28, "gfx801"},          {0x29, "gfx802"},
    {0x2a, "gfx803"},         {0x2b, "gfx810"},          {0x2c, "gfx900"},
    {0x2d, "gfx902"},         {0x2e, "gfx904"},          {0x2f, "gfx906"},
    {0x30, "gfx908"},         {0x31, "gfx909"},          {0x32, "gfx90c"},
    {0x33, "gfx1010"},        {0x34, "gfx1011"},         {0x35, "gfx1012"},
    {0x36, "gfx1030"},        {0x37, "gfx1031"},         {0x38, "gfx1032"},
    {0x39, "gfx1033"},        {0x3a, "gfx602"},          {0x3b, "gfx705"},
    {0x3c, "gfx805"},         {0x3d, "gfx1035"},         {0x3e, "gfx1034"},
    {0x3f, "gfx90a"},         {0x41, "gfx1100"},         {0x42, "gfx1013"},
    {0x43, "gfx1150"},        {0x44, "gfx1103"},         {0x45, "gfx1036"},
    {0x46, "gfx1101"},        {0x47, "gfx1102"},         {0x48, "gfx1200"},
    {0x49, "gfx1250"},        {0x4a, "gfx1151"},         {0x4c, "gfx942"},
    {0x4e, "gfx1201"},        {0x4f, "gfx950"},          {0x51, "gfx9-generic"},
    {0x52, "gfx10-1-generic"}, {0x53, "gfx10-3-generic"}, {0x54, "gfx11-generic"},
    {0x55, "gfx1152"},        {0x58, "gfx1153"},         {0x59, "gfx12-generic"},
    {0x5a, "gfx1251"},        {0x5f, "gfx9-4-generic"},
};

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

class Loader {
 public:
  Loader(CodeObject* object, Memory* memory, int device)
      : object_(*object), memory_(memory), device_(device) {}

  bool run() {
    return container() && identify() && metadata() && load() && kernels() && symbols();
  }

  void undo() {
    for (uint64_t base : object_.regions) memory_->release(base);
    object_.regions.clear();
  }

  std::string error;
  int hip_error = 0;

 private:
  bool fail(int code, const std::string& why) {
    if (error.empty()) {
      error = why;
      hip_error = code;
    }
    return false;
  }

  bool container() {
    std::string why;
    if (elf::parse(object_.image.data(), object_.image.size(), &file_, &why)) return true;
    return fail(kInvalidImage, why);
  }

  bool identify() {
    if (file_.machine != 224) {
      const char* name = file_.machine == 62    ? " (x86-64)"
                         : file_.machine == 183 ? " (AArch64)"
                         : file_.machine == 190 ? " (CUDA)"
                                                : "";
      return fail(kInvalidImage, "the ELF file is for machine " + std::to_string(file_.machine) +
                                     name + ", not for AMDGPU (224)");
    }
    if (file_.type == 1) {
      return fail(kInvalidImage,
                  "the file is a relocatable object (.o); link it with ld.lld -shared first");
    }
    if (file_.type != 3) return fail(kInvalidImage, "the ELF file is not a shared object");
    if (file_.os_abi != 64) {
      return fail(kInvalidImage, "the ELF file is for OS ABI " + std::to_string(file_.os_abi) +
                                     ", not for amdhsa (64)");
    }
    if (file_.abi_version < 2 || file_.abi_version > 4) {
      return fail(kInvalidImage, "the ELF ABI version is " + std::to_string(file_.abi_version) +
                                     "; supported are code object versions 4, 5 and 6");
    }
    object_.version = file_.abi_version + 2;
    const uint8_t mach = file_.flags & 0xff;
    for (const Mach& m : kMachs) {
      if (m.number == mach) object_.arch = m.arch;
    }
    if (object_.arch.empty()) {
      return fail(kNoBinaryForGpu, "the object is for an unknown processor (e_flags " +
                                       hex(file_.flags) + ")");
    }
    target_ = find_target(object_.arch);
    if (target_ == nullptr) {
      return fail(kNoBinaryForGpu, "the object is for " + object_.arch +
                                       ", which this simulator does not have");
    }
    return true;
  }

  bool metadata() {
    const elf::Note* found = nullptr;
    for (const elf::Note& note : file_.notes) {
      if (note.owner == "AMDGPU" && note.type == 32) found = &note;
    }
    if (found == nullptr) {
      return fail(kInvalidImage, "the object has no metadata note (NT_AMDGPU_METADATA): HIP cannot "
                                 "launch its kernels; write an .amdgpu_metadata block");
    }
    std::string why;
    if (!msgpack::parse(object_.image.data() + found->offset, found->size, &metadata_, &why)) {
      return fail(kInvalidImage, "the metadata note is damaged: its MessagePack " + why);
    }
    const msgpack::Value* target = metadata_.find("amdhsa.target");
    if (target != nullptr) {   // "amdgcn-amd-amdhsa--gfx950:xnack-"
      const std::string plain = target->text.substr(0, target->text.find(':'));
      const std::string arch = plain.substr(plain.find("gfx") == std::string::npos
                                                ? 0 : plain.find("gfx"));
      if (arch != object_.arch) {
        return fail(kInvalidKernelFile, "the metadata says target " + arch +
                                            ", the ELF header says " + object_.arch);
      }
    }
    return true;
  }

  // Copies the segments to one reservation, so that their distances stay what the linker made
  // them, then splits that into one region per segment.
  bool load() {
    for (const elf::Section& s : file_.sections) {
      // The disassembler goes by sections and the device by segments: they must be one text.
      constexpr uint64_t kExecInstr = 4;   // SHF_EXECINSTR
      if ((s.flags & kExecInstr) != 0 && s.size != 0 &&
          file_.offset_of(s.address, s.size) != s.offset) {
        return fail(kInvalidImage, "the code section " + s.name + " at " + hex(s.address) +
                                       " is not what the segments load there");
      }
      if (s.name == ".text") {
        object_.text_address = s.address;
        object_.text_size = s.size;
      }
    }
    std::vector<const elf::Segment*> segments;
    for (const elf::Segment& s : file_.segments) {
      if (s.type == elf::kLoad && s.memory_size != 0) segments.push_back(&s);
      if (s.type == elf::kLoad && s.flags & elf::kExecutable && object_.text_size == 0) {
        object_.text_address = s.address;
        object_.text_size = s.file_size;
      }
    }
    if (segments.empty()) return fail(kInvalidImage, "the object has nothing to load");
    std::sort(segments.begin(), segments.end(),
              [](const auto* a, const auto* b) { return a->address < b->address; });
    for (size_t i = 1; i < segments.size(); ++i) {
      if (segments[i]->address - segments[i - 1]->address < segments[i - 1]->memory_size) {
        return fail(kInvalidImage, "two segments of the object overlap");
      }
    }
    constexpr uint64_t kMostCode = uint64_t{1} << 28;
    for (const elf::Segment* s : segments)
      if (s->flags & elf::kExecutable) object_.code.push_back({s->address, s->file_size});
    if (!object_.code.empty() &&
        object_.code.back().address + object_.code.back().size - object_.code.front().address > kMostCode) {
      return fail(kInvalidImage, "the object's code spans more than 256 MiB");
    }
    if (memory_ == nullptr) return true;

    const uint64_t start = segments.front()->address & ~uint64_t{4095};
    const uint64_t end = segments.back()->address + segments.back()->memory_size;
    const uint64_t base = memory_->allocate(end - start, RegionKind::code, device_, object_.name);
    if (base == 0) {
      return fail(kOutOfMemory, "there is no memory for the object's " +
                                    std::to_string(end - start) + " bytes");
    }
    object_.load_base = base - start;
    object_.regions = {base};
    std::vector<Memory::Part> parts;
    for (const elf::Segment* s : segments) {
      std::memcpy(loaded(s->address), object_.image.data() + s->offset, s->file_size);
      Memory::Part part;
      part.offset = s->address - start;
      part.size = s->memory_size;
      part.writable = (s->flags & elf::kWritable) != 0 && !relocated_read_only(*s);
      part.name = (s->flags & elf::kExecutable ? "code of " : part.writable ? "data of "
                                                                            : "constants of ") +
                  object_.name + " (" + std::to_string(part.size) + " bytes)";
      parts.push_back(std::move(part));
    }
    if (!relocate()) return false;
    if (memory_->carve(base, parts)) {   // else segments share a page and stay one region
      object_.regions.clear();
      for (const Memory::Part& part : parts) object_.regions.push_back(base + part.offset);
    }
    return true;
  }

  bool relocated_read_only(const elf::Segment& segment) const {
    constexpr uint32_t kRelro = 0x6474e552;   // PT_GNU_RELRO
    for (const elf::Segment& s : file_.segments) {
      if (s.type == kRelro && s.address <= segment.address &&
          segment.address + segment.memory_size <= s.address + s.memory_size) {
        return true;
      }
    }
    return false;
  }

  uint8_t* loaded(uint64_t address) const {
    return reinterpret_cast<uint8_t*>(object_.load_base + address);
  }

  bool relocate() {
    for (const elf::Relocation& r : file_.relocations) {
      uint64_t value = object_.load_base + static_cast<uint64_t>(r.addend);
      uint64_t bytes = 8;
      const uint64_t place = object_.load_base + r.address;
      if (r.symbol != 0) {
        const elf::Symbol& symbol = file_.dynamic_symbols[r.symbol];
        if (symbol.section == elf::kUndefined) {
          return fail(kSymbolNotFound, "the object needs symbol " + symbol.name +
                                           ", which nothing defines");
        }
        value = symbol.value + static_cast<uint64_t>(r.addend) +
                (symbol.section == elf::kAbsolute ? 0 : object_.load_base);
      }
      switch (r.type) {
        case 0: continue;                                             // NONE
        case 1: case 6: bytes = 4; break;                             // ABS32_LO, ABS32
        case 2: bytes = 4; value >>= 32; break;                       // ABS32_HI
        case 3: case 13: break;                                       // ABS64, RELATIVE64
        case 4: case 10: bytes = 4; value -= place; break;            // REL32, REL32_LO
        case 5: value -= place; break;                                // REL64
        case 11: bytes = 4; value = (value - place) >> 32; break;     // REL32_HI
        default:
          return fail(kInvalidImage, "the object has a relocation of unknown type " +
                                         std::to_string(r.type) + " at " + hex(r.address));
      }
      if (file_.segment_of(r.address, bytes) == nullptr) {
        return fail(kInvalidImage, "a relocation at " + hex(r.address) +
                                       " lies outside the segments");
      }
      std::memcpy(loaded(r.address), &value, bytes);
    }
    return true;
  }

  const elf::Symbol* find_symbol(const std::string& name) const {
    for (const auto* table : {&file_.dynamic_symbols, &file_.symbols}) {
      for (const elf::Symbol& s : *table) {
        if (s.name == name && s.section != elf::kUndefined) return &s;
      }
    }
    return nullptr;
  }

  // Reads an optional number; absent leaves `out` alone. False only for a wrong type.
  bool number(const msgpack::Value& map, const std::string& kernel, const char* key, uint32_t* out,
              bool* present = nullptr) {
    const msgpack::Value* value = map.find(key);
    if (present != nullptr) *present = value != nullptr;
    if (value == nullptr) return true;
    if (value->type != msgpack::Value::Type::uinteger || value->uinteger > UINT32_MAX) {
      return fail(kInvalidKernelFile, kernel + ": metadata " + key + " is not a 32-bit number");
    }
    *out = static_cast<uint32_t>(value->uinteger);
    return true;
  }

  std::string text(const msgpack::Value& map, const char* key) const {
    const msgpack::Value* value = map.find(key);
    return value != nullptr && value->type == msgpack::Value::Type::string ? value->text : "";
  }

  bool agree(const Kernel& k, bool present, const char* what, uint32_t metadata,
             uint32_t descriptor) {
    if (!present || metadata == descriptor) return true;
    return fail(kInvalidKernelFile, k.name + ": the metadata says " + what + " " +
                                        std::to_string(metadata) + ", the kernel descriptor says " +
                                        std::to_string(descriptor));
  }

  bool kernels() {
    const msgpack::Value* list = metadata_.find("amdhsa.kernels");
    if (list == nullptr || list->type != msgpack::Value::Type::array) {
      return fail(kInvalidImage, "the metadata has no list amdhsa.kernels");
    }
    for (const msgpack::Value& entry : list->items) {
      if (!kernel_from_metadata(entry)) return false;
    }
    // Descriptors that the metadata forgot: shown by inspection, refused by HIP.
    for (const elf::Symbol& s : file_.dynamic_symbols) {
      if (s.type != elf::kObject || s.size != 64 || s.section == elf::kUndefined) continue;
      if (s.name.size() <= 3 || s.name.compare(s.name.size() - 3, 3, ".kd") != 0) continue;
      const std::string name = s.name.substr(0, s.name.size() - 3);
      if (std::any_of(object_.kernels.begin(), object_.kernels.end(),
                      [&](const Kernel& k) { return k.name == name; })) {
        continue;
      }
      Kernel kernel;
      kernel.name = name;
      if (!descriptor(s, &kernel)) return false;
      hash(&kernel, msgpack::Value());
      object_.kernels.push_back(std::move(kernel));
    }
    return true;
  }

  bool kernel_from_metadata(const msgpack::Value& entry) {
    Kernel kernel;
    kernel.has_metadata = true;
    std::string symbol = text(entry, ".symbol");
    if (symbol.empty() && !text(entry, ".name").empty()) symbol = text(entry, ".name") + ".kd";
    if (symbol.size() <= 3 || symbol.compare(symbol.size() - 3, 3, ".kd") != 0) {
      return fail(kInvalidKernelFile, "a kernel of the metadata has no .symbol that ends in .kd");
    }
    kernel.name = symbol.substr(0, symbol.size() - 3);
    for (const Kernel& other : object_.kernels) {
      if (other.name == kernel.name) {
        return fail(kInvalidKernelFile, kernel.name + ": the metadata has this kernel twice");
      }
    }
    const elf::Symbol* found = find_symbol(symbol);
    if (found == nullptr) {
      return fail(kInvalidKernelFile, kernel.name + ": the metadata names this kernel, but the "
                                      "object has no symbol " + symbol);
    }
    if (!descriptor(*found, &kernel)) return false;

    bool has_kernarg = false, has_lds = false, has_scratch = false, has_wave = false;
    const std::string& name = kernel.name;
    if (!number(entry, name, ".kernarg_segment_size", &kernel.meta_kernarg_bytes, &has_kernarg) ||
        !number(entry, name, ".group_segment_fixed_size", &kernel.meta_lds_bytes, &has_lds) ||
        !number(entry, name, ".private_segment_fixed_size", &kernel.meta_scratch_bytes,
                &has_scratch) ||
        !number(entry, name, ".wavefront_size", &kernel.meta_wave_size, &has_wave) ||
        !number(entry, name, ".vgpr_count", &kernel.meta_vgprs) ||
        !number(entry, name, ".agpr_count", &kernel.meta_agprs) ||
        !number(entry, name, ".sgpr_count", &kernel.meta_sgprs) ||
        !number(entry, name, ".max_flat_workgroup_size", &kernel.meta_max_workgroup)) {
      return false;
    }
    if (!has_kernarg) {
      return fail(kInvalidKernelFile, name + ": the metadata has no .kernarg_segment_size");
    }
    const Descriptor& d = kernel.descriptor;
    if (!agree(kernel, true, "kernarg size", kernel.meta_kernarg_bytes, d.kernarg_bytes) ||
        !agree(kernel, has_lds, "LDS size", kernel.meta_lds_bytes, d.lds_bytes) ||
        !agree(kernel, has_scratch, "scratch size", kernel.meta_scratch_bytes, d.scratch_bytes) ||
        !agree(kernel, has_wave, "wave size", kernel.meta_wave_size, d.wave32 ? 32 : 64)) {
      return false;
    }
    if (!arguments(entry, &kernel)) return false;
    hash(&kernel, entry);
    object_.kernels.push_back(std::move(kernel));
    return true;
  }

  bool arguments(const msgpack::Value& entry, Kernel* kernel) {
    const msgpack::Value* list = entry.find(".args");
    if (list == nullptr) return true;
    for (const msgpack::Value& item : list->items) {
      KernelArg arg;
      arg.name = text(item, ".name");
      arg.value_kind = text(item, ".value_kind");
      bool has_offset = false, has_size = false;
      if (!number(item, kernel->name, ".offset", &arg.offset, &has_offset) ||
          !number(item, kernel->name, ".size", &arg.size, &has_size)) {
        return false;
      }
      const std::string label = arg.name.empty() ? std::to_string(kernel->args.size()) : arg.name;
      if (!has_offset || !has_size || arg.value_kind.empty()) {
        return fail(kInvalidKernelFile, kernel->name + ": argument " + label +
                                            " lacks .offset, .size or .value_kind");
      }
      if (uint64_t{arg.offset} + arg.size > kernel->meta_kernarg_bytes) {
        return fail(kInvalidKernelFile,
                    kernel->name + ": argument " + label + " ends at byte " +
                        std::to_string(uint64_t{arg.offset} + arg.size) + " of a kernarg segment "
                        "of " + std::to_string(kernel->meta_kernarg_bytes));
      }
      kernel->args.push_back(std::move(arg));
    }
    return true;
  }

  bool descriptor(const elf::Symbol& symbol, Kernel* kernel) {
    const auto offset = file_.offset_of(symbol.value, 64);
    if (!offset || symbol.section == elf::kAbsolute) {
      return fail(kInvalidKernelFile, kernel->name + ": the kernel descriptor " + symbol.name +
                                          " at " + hex(symbol.value) +
                                          " lies outside the object's segments");
    }
    if (symbol.value % 64 != 0) {
      return fail(kInvalidKernelFile, kernel->name + ": the kernel descriptor is not aligned to 64 "
                                      "bytes; write .p2align 6 before .amdhsa_kernel");
    }
    Descriptor& d = kernel->descriptor;
    std::memcpy(d.raw.data(), object_.image.data() + *offset, 64);
    auto word = [&](size_t at) {
      uint32_t value;
      std::memcpy(&value, d.raw.data() + at, 4);
      return value;
    };
    d.lds_bytes = word(0);
    d.scratch_bytes = word(4);
    d.kernarg_bytes = word(8);
    std::memcpy(&d.entry_offset, d.raw.data() + 16, 8);
    d.rsrc3 = word(44);
    d.rsrc1 = word(48);
    d.rsrc2 = word(52);
    d.properties = static_cast<uint16_t>(word(56));
    d.preload = static_cast<uint16_t>(word(56) >> 16);
    d.wave32 = (d.properties >> 10 & 1) != 0;
    d.dynamic_stack = (d.properties >> 11 & 1) != 0;
    const uint32_t blocks = (d.rsrc1 & 63) + 1;
    if (target_->wave_size == 64) {
      // One file of arch and accumulation registers. The SGPR field counts eights, and sixteens
      // are allocated.
      d.vgprs_allocated = blocks * 8;
      d.accum_offset = ((d.rsrc3 & 63) + 1) * 4;
      if (d.accum_offset > d.vgprs_allocated) {
        return fail(kInvalidKernelFile, kernel->name + ": the kernel descriptor puts the first AGPR at " +
                                            std::to_string(d.accum_offset) + " of " +
                                            std::to_string(d.vgprs_allocated) + " registers");
      }
      d.sgprs_allocated = static_cast<uint32_t>(round_up(((d.rsrc1 >> 6 & 15) + 1) * 8, 16));
      if (d.wave32) {
        return fail(kInvalidKernelFile, kernel->name + ": the kernel descriptor asks for wave32, "
                                        "which " + object_.arch + " does not have");
      }
    } else {
      d.vgprs_allocated = blocks * (d.wave32 ? 8 : 4);
      d.accum_offset = d.vgprs_allocated;
    }
    return starting_state(*kernel) && entry(symbol, kernel);
  }

  // What the hardware puts into a wave before it starts has to have room there: at most 16 user SGPRs.
  // Those of the enable bits come first (four dwords for the private segment buffer, two for each
  // pointer, one for the private segment's size).
  bool starting_state(const Kernel& kernel) {
    const Descriptor& d = kernel.descriptor;
    constexpr uint32_t kDwords[] = {4, 2, 2, 2, 2, 2, 1};
    const uint32_t length = d.preload & 127, from = d.preload >> 7;
    uint32_t count = length;
    for (int bit = 0; bit < 7; ++bit) count += (d.properties >> bit & 1) * kDwords[bit];
    if (length != 0 && target_->wave_size != 64) {
      return fail(kInvalidKernelFile, kernel.name + ": the kernel descriptor preloads arguments, "
                                      "which " + object_.arch + " does not do");
    }
    if (count > 16) {
      return fail(kInvalidKernelFile, kernel.name + ": the kernel descriptor asks for " +
                                          std::to_string(count) + " user SGPRs; there are 16");
    }
    if (uint64_t{4} * (from + length) > round_up(d.kernarg_bytes, 4) && length != 0) {
      return fail(kInvalidKernelFile,
                  kernel.name + ": the kernel descriptor preloads up to byte " +
                      std::to_string(4 * (from + length)) + " of a kernarg segment of " +
                      std::to_string(d.kernarg_bytes));
    }
    if (target_->wave_size != 64 && d.vgprs_allocated > 256) {
      return fail(kInvalidKernelFile, kernel.name + ": the kernel descriptor allocates " +
                                          std::to_string(d.vgprs_allocated) +
                                          " VGPRs; a wave has at most 256");
    }
    // Scratch is given to waves in up to 8 MiB.
    constexpr uint32_t kMostScratch = 8u << 20;
    if (d.scratch_bytes > kMostScratch / (d.wave32 ? 32 : 64)) {
      return fail(kInvalidKernelFile, kernel.name + ": " + std::to_string(d.scratch_bytes) +
                                          " bytes of scratch per lane are more than a wave can have");
    }
    return true;
  }

  bool entry(const elf::Symbol& symbol, Kernel* kernel) {
    const uint64_t at = symbol.value + static_cast<uint64_t>(kernel->descriptor.entry_offset);
    const elf::Segment* segment = file_.segment_of(at, 4);
    if (segment == nullptr || (segment->flags & elf::kExecutable) == 0 ||
        !file_.offset_of(at, 4)) {
      return fail(kInvalidKernelFile, kernel->name + ": the kernel descriptor's entry " + hex(at) +
                                          " is not in executable code");
    }
    if (at % 256 != 0) {   // the hardware's start register holds address / 256
      return fail(kInvalidKernelFile, kernel->name + ": the kernel's entry is not aligned to 256 "
                                      "bytes; write .p2align 8 before its label");
    }
    const uint64_t most = segment->address + segment->file_size - at;
    uint64_t size = 0, next = most;
    for (const auto* table : {&file_.dynamic_symbols, &file_.symbols}) {
      for (const elf::Symbol& s : *table) {
        if (s.type != elf::kFunction || s.section == elf::kUndefined) continue;
        if (s.value == at) size = std::max(size, s.size);
        if (s.value > at) next = std::min(next, s.value - at);
      }
    }
    if (size > most) {
      return fail(kInvalidKernelFile, kernel->name + ": the function symbol is longer than the "
                                      "code (" + std::to_string(size) + " bytes)");
    }
    kernel->descriptor_address = object_.load_base + symbol.value;
    kernel->entry = object_.load_base + at;
    kernel->code_size = size != 0 ? size : next;   // without .size: up to the next function
    return true;
  }

  // interfaces.md's kernel_sha256. The entry offset is left out because it changes with the
  // layout of the file around the kernel, not with the kernel.
  void hash(Kernel* kernel, const msgpack::Value& meta) const {
    const uint64_t at = kernel->entry - object_.load_base;
    std::array<uint8_t, 64> raw = kernel->descriptor.raw;
    std::fill(raw.begin() + 16, raw.begin() + 24, uint8_t{0});
    const std::string canonical = msgpack::canonical(meta);
    Sha256 sha;
    sha.update(object_.image.data() + *file_.offset_of(at, kernel->code_size), kernel->code_size);
    sha.update(raw.data(), raw.size());
    sha.update(canonical.data(), canonical.size());
    kernel->sha256 = sha.hex();
  }

  bool symbols() {
    const auto& table = file_.symbols.empty() ? file_.dynamic_symbols : file_.symbols;
    for (const elf::Symbol& s : table) {
      if (s.name.empty() || s.section == elf::kUndefined) continue;
      Symbol symbol;
      symbol.name = s.name;
      symbol.value = s.value;
      symbol.size = s.size;
      symbol.absolute = s.section == elf::kAbsolute;
      symbol.function = s.type == elf::kFunction;
      object_.symbols.push_back(std::move(symbol));
    }
    return true;
  }

  CodeObject& object_;
  Memory* memory_;
  int device_;
  elf::File file_;
  msgpack::Value metadata_;
  const Target* target_ = nullptr;
};

}  // namespace

std::shared_ptr<CodeObject> load_code_object(const void* image, size_t size,
                                             const std::string& name, Memory* memory, int device,
                                             std::string* error, int* hip_error) {
  auto object = std::make_shared<CodeObject>();
  object->name = name;
  object->sha256 = Sha256::of(image, size);
  const uint8_t* data = static_cast<const uint8_t*>(image);
  std::vector<uint8_t> unpacked;
  if (!bundle::select(&data, &size, "", &unpacked, error, hip_error)) return nullptr;
  object->image.assign(data, data + size);
  Loader loader(object.get(), memory, device);
  if (loader.run()) return object;
  if (memory != nullptr) loader.undo();
  *error = loader.error;
  *hip_error = loader.hip_error;
  return nullptr;
}

}  // namespace netra
