#include "code_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "error.h"
#include "msgpack.h"

namespace netra::bridge {
namespace {

constexpr uint16_t kMachineAmdgpu = 224;
constexpr uint8_t kOsAbiHsa = 64;
constexpr uint32_t kNoteMetadata = 32;  // NT_AMDGPU_METADATA
constexpr size_t kDescriptorBytes = 64;

// A view of the file with checked access.
class Reader {
 public:
  Reader(const std::vector<uint8_t>& file, const char* path) : file_(file), path_(path) {}

  const char* path() const { return path_; }
  size_t size() const { return file_.size(); }

  const uint8_t* at(uint64_t offset, uint64_t count) const {
    if (offset > file_.size() || count > file_.size() - offset) return nullptr;
    return file_.data() + offset;
  }

  template <typename T>
  bool get(uint64_t offset, T* value) const {
    const uint8_t* bytes = at(offset, sizeof(T));
    if (bytes == nullptr) return false;
    std::memcpy(value, bytes, sizeof(T));
    return true;
  }

  bool starts(std::string_view text) const {
    return file_.size() >= text.size() && std::memcmp(file_.data(), text.data(), text.size()) == 0;
  }

  netra_status bad(const char* what) const {
    return fail(NETRA_ERROR_IMAGE, "%s: %s", path_, what);
  }

  netra_status truncated(uint64_t needed) const {
    return fail(NETRA_ERROR_IMAGE,
                "%s: truncated: its headers speak of %llu bytes, the file has %zu. Build or copy "
                "it again",
                path_, static_cast<unsigned long long>(needed), file_.size());
  }

 private:
  const std::vector<uint8_t>& file_;
  const char* path_;
};

netra_status check_header(const Reader& file, Elf64_Ehdr* header) {
  if (file.size() == 0) return file.bad("the file is empty. Build or copy it again");
  if (file.starts("<"))
    return file.bad("this is a web page or XML, no code object (a failed download?)");
  if (file.starts("version https://git-lfs"))
    return file.bad("this is a Git LFS pointer, no code object. Fetch the file itself");
  if (file.starts("__CLANG_OFFLOAD_BUNDLE__") || file.starts("CCOB"))
    return file.bad("this is an offload bundle. Unbundle the code object of one target");
  if (!file.starts(ELFMAG)) {
    if (file.size() < 4 && std::string_view(ELFMAG).substr(0, file.size()) ==
                               std::string_view(reinterpret_cast<const char*>(file.at(0, 0)),
                                                file.size()))
      return file.truncated(sizeof *header);
    return file.bad("this is no ELF file, hence no code object");
  }
  if (!file.get(0, header)) return file.truncated(sizeof *header);
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    return file.bad("this is no 64-bit little-endian ELF file");
  if (header->e_machine != kMachineAmdgpu)
    return fail(NETRA_ERROR_IMAGE,
                "%s: this ELF file is for machine %u, not for AMDGPU (%u): a host object?",
                file.path(), header->e_machine, kMachineAmdgpu);
  if (header->e_ident[EI_OSABI] != kOsAbiHsa)
    return file.bad("this AMDGPU object is not for HSA (assemble for amdgcn-amd-amdhsa)");
  if (header->e_type != ET_DYN)
    return file.bad("this object is not linked (run ld.lld -shared on it)");
  if (header->e_ident[EI_ABIVERSION] < 2 || header->e_ident[EI_ABIVERSION] > 4)
    return fail(NETRA_ERROR_IMAGE, "%s: code object version %u; 4, 5 and 6 are known", file.path(),
                header->e_ident[EI_ABIVERSION] + 2u);
  if (header->e_phentsize != sizeof(Elf64_Phdr) ||
      (header->e_shnum != 0 && header->e_shentsize != sizeof(Elf64_Shdr)))
    return file.bad("its ELF header is malformed");
  return NETRA_OK;
}

struct Tables {
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Shdr> sections;
};

netra_status read_tables(const Reader& file, const Elf64_Ehdr& header, Tables* tables) {
  // The section table is what a linker writes last, so this finds most cut files.
  const struct {
    uint64_t offset, count, width;
  } spans[] = {{header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr)},
               {header.e_shoff, header.e_shnum, sizeof(Elf64_Shdr)}};
  for (const auto& span : spans)
    if (file.at(span.offset, span.count * span.width) == nullptr)
      return file.truncated(span.offset + span.count * span.width);
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    file.get(header.e_phoff + i * sizeof segment, &segment);
    if (file.at(segment.p_offset, segment.p_filesz) == nullptr)
      return file.truncated(segment.p_offset + segment.p_filesz);
    tables->segments.push_back(segment);
  }
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    file.get(header.e_shoff + i * sizeof section, &section);
    if (section.sh_type != SHT_NOBITS && file.at(section.sh_offset, section.sh_size) == nullptr)
      return file.truncated(section.sh_offset + section.sh_size);
    tables->sections.push_back(section);
  }
  return NETRA_OK;
}

// The metadata note's payload, or null.
const uint8_t* find_metadata(const Reader& file, const Tables& tables, size_t* size) {
  for (const Elf64_Phdr& segment : tables.segments) {
    if (segment.p_type != PT_NOTE) continue;
    uint64_t at = segment.p_offset;
    const uint64_t end = segment.p_offset + segment.p_filesz;
    Elf64_Nhdr note;
    while (end - at >= sizeof note && file.get(at, &note)) {
      const uint64_t name = at + sizeof note;
      const uint64_t payload = name + (static_cast<uint64_t>(note.n_namesz) + 3) / 4 * 4;
      const uint64_t next = payload + (static_cast<uint64_t>(note.n_descsz) + 3) / 4 * 4;
      if (payload > end || note.n_descsz > end - payload) break;
      const uint8_t* owner = file.at(name, 7);
      if (note.n_type == kNoteMetadata && note.n_namesz == 7 && owner != nullptr &&
          std::memcmp(owner, "AMDGPU", 7) == 0) {
        *size = note.n_descsz;
        return file.at(payload, note.n_descsz);
      }
      if (next >= end) break;
      at = next;
    }
  }
  return nullptr;
}

uint32_t narrow(uint64_t value, bool* good) {
  *good = *good && value <= UINT32_MAX;
  return static_cast<uint32_t>(value);
}

Argument read_argument(Msgpack& in, bool* good) {
  Argument argument;
  for (uint32_t left = in.map(); left != 0 && in.good(); --left) {
    const std::string_view key = in.string();
    if (key == ".name") argument.name = in.string();
    else if (key == ".value_kind") argument.kind = in.string();
    else if (key == ".offset") argument.offset = narrow(in.number(), good);
    else if (key == ".size") argument.size = narrow(in.number(), good);
    else in.skip();
  }
  return argument;
}

KernelImage read_kernel(Msgpack& in, bool* good) {
  KernelImage kernel;
  for (uint32_t left = in.map(); left != 0 && in.good(); --left) {
    const std::string_view key = in.string();
    if (key == ".symbol") kernel.name = in.string();
    else if (key == ".kernarg_segment_size") kernel.kernarg_bytes = narrow(in.number(), good);
    else if (key == ".group_segment_fixed_size") kernel.lds_bytes = narrow(in.number(), good);
    else if (key == ".private_segment_fixed_size")
      kernel.scratch_bytes = narrow(in.number(), good);
    else if (key == ".max_flat_workgroup_size") kernel.max_threads = narrow(in.number(), good);
    else if (key == ".wavefront_size") kernel.wave_size = narrow(in.number(), good);
    else if (key == ".args")
      for (uint32_t args = in.array(); args != 0 && in.good(); --args)
        kernel.arguments.push_back(read_argument(in, good));
    else in.skip();
  }
  if (kernel.name.size() > 3 && kernel.name.compare(kernel.name.size() - 3, 3, ".kd") == 0)
    kernel.name.resize(kernel.name.size() - 3);
  else
    *good = false;
  std::sort(kernel.arguments.begin(), kernel.arguments.end(),
            [](const Argument& a, const Argument& b) { return a.offset < b.offset; });
  return kernel;
}

netra_status read_metadata(const Reader& file, const uint8_t* data, size_t size,
                           ObjectImage* object) {
  Msgpack in(data, size);
  bool good = true;
  std::string target;
  for (uint32_t left = in.map(); left != 0 && in.good(); --left) {
    const std::string_view key = in.string();
    if (key == "amdhsa.target") target = in.string();
    else if (key == "amdhsa.kernels")
      for (uint32_t kernels = in.array(); kernels != 0 && in.good(); --kernels)
        object->kernels.push_back(read_kernel(in, &good));
    else in.skip();
  }
  if (!in.good() || !good) return file.bad("its metadata is malformed");
  // "amdgcn-amd-amdhsa--gfx950:sramecc+:xnack-"; a hand-written source may leave it out.
  const size_t dashes = target.rfind("--");
  if (dashes != std::string::npos) {
    target.erase(0, dashes + 2);
    object->arch = target.substr(0, target.find(':'));
  }
  return NETRA_OK;
}

// The processor in e_flags, for the targets that this project has kernels for.
const char* processor(uint32_t flags) {
  switch (flags & 0xff) {
    case 0x4f: return "gfx950";
    case 0x4a: return "gfx1151";
    default: return nullptr;
  }
}

// The features in e_flags: two bits each, where 2 is "off", 3 is "on" and the rest "any".
std::string required_features(uint32_t flags) {
  std::string text;
  const uint32_t xnack = flags >> 8 & 3, sramecc = flags >> 10 & 3;
  if (sramecc >= 2) text += sramecc == 3 ? ":sramecc+" : ":sramecc-";
  if (xnack >= 2) text += xnack == 3 ? ":xnack+" : ":xnack-";
  return text;
}

netra_status check_target(const Reader& file, uint32_t flags, ObjectImage* object) {
  const char* flagged = processor(flags);
  if (flagged != nullptr && object->arch.empty()) object->arch = flagged;
  if (object->arch.empty())
    return fail(NETRA_ERROR_IMAGE,
                "%s: its metadata names no target, and its ELF flags (%#x) none that is known here",
                file.path(), flags);
  if (flagged != nullptr && object->arch != flagged)
    return fail(NETRA_ERROR_IMAGE, "%s: its ELF flags say %s, its metadata %s", file.path(),
                flagged, object->arch.c_str());
  object->features = required_features(flags);
  return NETRA_OK;
}

// File offset of the descriptor of `name`, 0 when there is none.
uint64_t find_descriptor(const Reader& file, const Tables& tables, const std::string& name) {
  const std::string wanted = name + ".kd";
  for (const Elf64_Shdr& table : tables.sections) {
    if (table.sh_type != SHT_DYNSYM || table.sh_entsize != sizeof(Elf64_Sym) ||
        table.sh_link >= tables.sections.size())
      continue;
    const Elf64_Shdr& strings = tables.sections[table.sh_link];
    for (uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      if (!file.get(table.sh_offset + i * sizeof symbol, &symbol)) return 0;
      const uint64_t start = strings.sh_offset + symbol.st_name;
      if (symbol.st_name >= strings.sh_size ||
          strings.sh_size - symbol.st_name < wanted.size() + 1)
        continue;
      const uint8_t* text = file.at(start, wanted.size() + 1);
      if (text == nullptr || std::memcmp(text, wanted.c_str(), wanted.size() + 1) != 0) continue;
      for (const Elf64_Phdr& segment : tables.segments) {
        const uint64_t into = symbol.st_value - segment.p_vaddr;
        if (segment.p_type == PT_LOAD && symbol.st_value >= segment.p_vaddr &&
            into <= segment.p_filesz && segment.p_filesz - into >= kDescriptorBytes)
          return segment.p_offset + into;
      }
    }
  }
  return 0;
}

netra_status differ(const Reader& file, const KernelImage& kernel, const char* what,
                    uint32_t descriptor, uint32_t metadata, netra_status status) {
  return fail(status,
              "%s: kernel %s: %s is %u in the descriptor and %u in the metadata; HIP reads both. "
              "Correct the source and build it again",
              file.path(), kernel.name.c_str(), what, descriptor, metadata);
}

netra_status check_arguments(const Reader& file, const KernelImage& kernel) {
  const char* name = kernel.name.c_str();
  if (kernel.kernarg_bytes % 8 != 0)
    return fail(NETRA_ERROR_KERNARG,
                "%s: kernel %s: the kernarg segment has %u bytes; it must be a multiple of 8",
                file.path(), name, kernel.kernarg_bytes);
  if (kernel.kernarg_bytes != 0 && kernel.arguments.empty())
    return fail(NETRA_ERROR_KERNARG,
                "%s: kernel %s: %u bytes of arguments but no .args in its metadata: HIP would copy "
                "none of them",
                file.path(), name, kernel.kernarg_bytes);
  uint64_t end = 0;
  for (const Argument& argument : kernel.arguments) {
    if (argument.kind.compare(0, 7, "hidden_") == 0)
      return fail(NETRA_ERROR_KERNARG,
                  "%s: kernel %s: hidden argument %s at offset %u: the bridge passes none",
                  file.path(), name, argument.kind.c_str(), argument.offset);
    if (argument.offset < end)
      return fail(NETRA_ERROR_KERNARG, "%s: kernel %s: argument %s at offset %u overlaps another",
                  file.path(), name, argument.name.c_str(), argument.offset);
    end = static_cast<uint64_t>(argument.offset) + argument.size;
    if (end > kernel.kernarg_bytes)
      return fail(NETRA_ERROR_KERNARG,
                  "%s: kernel %s: argument %s ends at %llu, beyond the segment of %u bytes",
                  file.path(), name, argument.name.c_str(), static_cast<unsigned long long>(end),
                  kernel.kernarg_bytes);
  }
  return NETRA_OK;
}

// Descriptor against metadata: the assembler compares nothing, and HIP reads both.
netra_status check_kernel(const Reader& file, const Tables& tables, const ObjectImage& object,
                          const KernelImage& kernel) {
  const uint64_t at = find_descriptor(file, tables, kernel.name);
  if (at == 0)
    return fail(NETRA_ERROR_SYMBOL, "%s: kernel %s: in the metadata, but its descriptor %s.kd is "
                "not among the dynamic symbols",
                file.path(), kernel.name.c_str(), kernel.name.c_str());
  uint32_t lds = 0, scratch = 0, kernarg = 0;
  uint16_t properties = 0;
  file.get(at, &lds);
  file.get(at + 4, &scratch);
  file.get(at + 8, &kernarg);
  file.get(at + 56, &properties);
  if (kernarg != kernel.kernarg_bytes)
    return differ(file, kernel, "the kernarg size", kernarg, kernel.kernarg_bytes,
                  NETRA_ERROR_KERNARG);
  if (lds != kernel.lds_bytes)
    return differ(file, kernel, "the LDS size", lds, kernel.lds_bytes, NETRA_ERROR_IMAGE);
  if (scratch != kernel.scratch_bytes)
    return differ(file, kernel, "the scratch size", scratch, kernel.scratch_bytes,
                  NETRA_ERROR_IMAGE);
  const uint32_t wave = (properties >> 10 & 1) != 0 ? 32 : 64;
  if (wave != kernel.wave_size)
    return differ(file, kernel, "the wave size", wave, kernel.wave_size, NETRA_ERROR_IMAGE);
  if (wave == 32 && object.arch.compare(0, 4, "gfx9") == 0)
    return fail(NETRA_ERROR_IMAGE, "%s: kernel %s: wave size 32, which %s does not have",
                file.path(), kernel.name.c_str(), object.arch.c_str());
  return check_arguments(file, kernel);
}

}  // namespace

netra_status read_object(const std::vector<uint8_t>& bytes, const char* path,
                         ObjectImage* object) {
  const Reader file(bytes, path);
  Elf64_Ehdr header;
  Tables tables;
  if (const netra_status status = check_header(file, &header)) return status;
  if (const netra_status status = read_tables(file, header, &tables)) return status;
  size_t size = 0;
  const uint8_t* metadata = find_metadata(file, tables, &size);
  if (metadata == nullptr) return file.bad("it has no AMDGPU metadata note");
  if (const netra_status status = read_metadata(file, metadata, size, object)) return status;
  object->version = header.e_ident[EI_ABIVERSION] + 2;
  if (const netra_status status = check_target(file, header.e_flags, object)) return status;
  if (object->kernels.empty()) return file.bad("it holds no kernel");
  for (const KernelImage& kernel : object->kernels)
    if (const netra_status status = check_kernel(file, tables, *object, kernel)) return status;
  return NETRA_OK;
}

bool runs_on(std::string_view arch, std::string_view features, std::string_view device) {
  const size_t colon = std::min(device.find(':'), device.size());
  if (device.substr(0, colon) != arch) return false;
  const std::string have = std::string(device.substr(colon)) + ":";
  while (!features.empty()) {
    const size_t next = std::min(features.find(':', 1), features.size());
    const std::string wanted = std::string(features.substr(0, next)) + ":";
    if (have.find(wanted) == std::string::npos) return false;
    features.remove_prefix(next);
  }
  return true;
}

}  // namespace netra::bridge
