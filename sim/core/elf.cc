#include "elf.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace netra::elf {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are copied as they are");

constexpr uint32_t kSymtab = 2, kDynsym = 11, kNobits = 8;   // SHT_*
// Dynamic tags (DT_*).
constexpr int64_t kHash = 4, kStrtab = 5, kSymtabTag = 6, kRela = 7, kRelaSize = 8, kStrSize = 10,
                  kRel = 17, kRelSize = 18, kJmpRel = 23, kPltRelSize = 2, kPltRel = 20;

// R_AMDGPU_ABS32_LO, ABS32_HI, REL32, ABS32, REL32_LO and REL32_HI patch four bytes.
bool is_narrow(uint32_t type) {
  return type == 1 || type == 2 || type == 4 || type == 6 || type == 10 || type == 11;
}

std::string hex(uint64_t value) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

class Reader {
 public:
  Reader(const uint8_t* data, size_t size, File* file) : data_(data), size_(size), file_(*file) {}

  bool run() {
    return header() && segments() && sections() && static_symbols() && dynamic() && notes();
  }

  std::string error;

 private:
  bool fail(const std::string& why) {
    if (error.empty()) error = why;
    return false;
  }

  bool inside(uint64_t offset, uint64_t bytes) const {
    return offset <= size_ && bytes <= size_ - offset;
  }

  template <typename T>
  T field(uint64_t offset) const {   // the caller has asked inside()
    T value;
    std::memcpy(&value, data_ + offset, sizeof value);
    return value;
  }

  // Text up to a NUL, within a string table; what has no NUL in there is damaged.
  bool string(uint64_t table, uint64_t table_size, uint64_t index, std::string* out) {
    if (index >= table_size) return fail("a name lies outside its string table");
    const void* nul = std::memchr(data_ + table + index, 0, table_size - index);
    if (nul == nullptr) return fail("a name runs past the end of its string table");
    out->assign(reinterpret_cast<const char*>(data_ + table + index));
    return true;
  }

  bool header() {
    if (size_ == 0) return fail("the file is empty");
    if (size_ < 4 || std::memcmp(data_, "\x7f" "ELF", 4) != 0) {
      const size_t look = std::min<size_t>(size_, 256);
      std::string start(reinterpret_cast<const char*>(data_), look);
      std::transform(start.begin(), start.end(), start.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
      if (start.find("<html") != std::string::npos || start.find("<!doctype") != std::string::npos) {
        return fail("the file is an HTML page, not a code object (a failed download?)");
      }
      return fail("the file is not an ELF file: it does not start with 7f 45 4c 46");
    }
    if (size_ < 64) {
      return fail("the file is truncated: " + std::to_string(size_) +
                  " bytes, and an ELF header alone has 64");
    }
    if (data_[4] != 2) return fail("the file is 32-bit ELF; AMDGPU code objects are 64-bit");
    if (data_[5] != 1) return fail("the file is big-endian ELF; AMDGPU code objects are not");
    file_.os_abi = data_[7];
    file_.abi_version = data_[8];
    file_.type = field<uint16_t>(16);
    file_.machine = field<uint16_t>(18);
    file_.flags = field<uint32_t>(48);
    return true;
  }

  bool truncated(const char* what, uint64_t offset, uint64_t bytes) {
    return fail("the file is truncated or damaged: " + std::string(what) + " needs bytes " +
                std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                ", the file has " + std::to_string(size_));
  }

  bool segments() {
    const uint64_t table = field<uint64_t>(32);
    const uint16_t entry = field<uint16_t>(54), count = field<uint16_t>(56);
    if (count != 0 && entry != 56) return fail("the program headers have an unknown size");
    if (!inside(table, uint64_t{56} * count)) {
      return truncated("the program header table", table, uint64_t{56} * count);
    }
    for (uint16_t i = 0; i < count; ++i) {
      const uint64_t at = table + uint64_t{56} * i;
      Segment s;
      s.type = field<uint32_t>(at);
      s.flags = field<uint32_t>(at + 4);
      s.offset = field<uint64_t>(at + 8);
      s.address = field<uint64_t>(at + 16);
      s.file_size = field<uint64_t>(at + 32);
      s.memory_size = field<uint64_t>(at + 40);
      if (!inside(s.offset, s.file_size)) return truncated("a segment", s.offset, s.file_size);
      if (s.type == kLoad && s.memory_size < s.file_size) {
        return fail("a segment is smaller in memory than in the file");
      }
      if (s.memory_size > UINT64_MAX - s.address) return fail("a segment wraps around 2^64");
      file_.segments.push_back(s);
    }
    return true;
  }

  bool sections() {
    const uint64_t table = field<uint64_t>(40);
    const uint16_t entry = field<uint16_t>(58), count = field<uint16_t>(60);
    const uint16_t names = field<uint16_t>(62);
    if (count == 0) return true;
    if (entry != 64) return fail("the section headers have an unknown size");
    if (!inside(table, uint64_t{64} * count)) {
      return truncated("the section header table", table, uint64_t{64} * count);
    }
    std::vector<uint32_t> name_index;
    for (uint16_t i = 0; i < count; ++i) {
      const uint64_t at = table + uint64_t{64} * i;
      Section s;
      name_index.push_back(field<uint32_t>(at));
      s.type = field<uint32_t>(at + 4);
      s.flags = field<uint64_t>(at + 8);
      s.address = field<uint64_t>(at + 16);
      s.offset = field<uint64_t>(at + 24);
      s.size = field<uint64_t>(at + 32);
      s.link = field<uint32_t>(at + 40);
      s.entry_size = field<uint64_t>(at + 56);
      if (s.type != 0 && s.type != kNobits && !inside(s.offset, s.size)) {
        return truncated("a section", s.offset, s.size);
      }
      file_.sections.push_back(s);
    }
    if (names >= count) return fail("the section name table does not exist");
    const Section table_of_names = file_.sections[names];
    if (table_of_names.type == 0 || table_of_names.type == kNobits) {
      return fail("the section name table has no bytes");
    }
    for (uint16_t i = 0; i < count; ++i) {
      if (!string(table_of_names.offset, table_of_names.size, name_index[i],
                  &file_.sections[i].name)) {
        return false;
      }
    }
    return true;
  }

  bool symbols(uint64_t table, uint64_t count, uint64_t strings, uint64_t strings_size,
               std::vector<Symbol>* out) {
    if (count > size_ / 24 || !inside(table, 24 * count)) {
      return truncated("a symbol table", table, 24 * std::min<uint64_t>(count, size_));
    }
    if (!inside(strings, strings_size)) {
      return truncated("a string table", strings, strings_size);
    }
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t at = table + 24 * i;
      Symbol s;
      if (!string(strings, strings_size, field<uint32_t>(at), &s.name)) return false;
      s.type = field<uint8_t>(at + 4) & 15;
      s.section = field<uint16_t>(at + 6);
      s.value = field<uint64_t>(at + 8);
      s.size = field<uint64_t>(at + 16);
      out->push_back(std::move(s));
    }
    return true;
  }

  bool static_symbols() {
    for (const Section& s : file_.sections) {
      if (s.type != kSymtab) continue;
      if (s.link >= file_.sections.size()) return fail("the symbol table has no string table");
      const Section& strings = file_.sections[s.link];
      if (!symbols(s.offset, s.size / 24, strings.offset, strings.size, &file_.symbols)) {
        return false;
      }
    }
    return true;
  }

  bool dynamic() {
    for (const Segment& s : file_.segments) {
      if (s.type != kDynamic) continue;
      uint64_t hash = 0, strtab = 0, symtab = 0, rela = 0, rela_size = 0, str_size = 0, rel = 0,
               rel_size = 0, plt = 0, plt_size = 0, plt_kind = kRela;
      for (uint64_t at = s.offset; at + 16 <= s.offset + s.file_size; at += 16) {
        const int64_t tag = field<int64_t>(at);
        const uint64_t value = field<uint64_t>(at + 8);
        if (tag == 0) break;
        switch (tag) {
          case kHash: hash = value; break;
          case kStrtab: strtab = value; break;
          case kSymtabTag: symtab = value; break;
          case kStrSize: str_size = value; break;
          case kRela: rela = value; break;
          case kRelaSize: rela_size = value; break;
          case kRel: rel = value; break;
          case kRelSize: rel_size = value; break;
          case kJmpRel: plt = value; break;
          case kPltRelSize: plt_size = value; break;
          case kPltRel: plt_kind = value; break;
          default: break;
        }
      }
      if (symtab != 0 && !dynamic_symbols(symtab, hash, strtab, str_size)) return false;
      if (!relocations(rela, rela_size, true) || !relocations(rel, rel_size, false) ||
          !relocations(plt, plt_size, plt_kind == static_cast<uint64_t>(kRela))) {
        return false;
      }
    }
    return true;
  }

  bool dynamic_symbols(uint64_t symtab, uint64_t hash, uint64_t strtab, uint64_t str_size) {
    uint64_t count = 0;
    bool known = false;
    for (const Section& section : file_.sections) {
      if (section.type == kDynsym) {
        count = section.size / 24;
        known = true;
      }
    }
    if (!known && hash != 0) {   // a file without section headers: nchain is the number of symbols
      const auto at = file_.offset_of(hash, 8);
      if (!at) return fail("the symbol hash table lies outside the segments");
      count = field<uint32_t>(*at + 4);
      known = true;
    }
    if (!known) return fail("the number of dynamic symbols is not told (no .dynsym, no DT_HASH)");
    if (count > size_ / 24) return fail("the dynamic symbol table is larger than the file");
    const auto table = file_.offset_of(symtab, 24 * count);
    const auto strings = file_.offset_of(strtab, str_size);
    if (!table || !strings) return fail("the dynamic symbol table lies outside the segments");
    return symbols(*table, count, *strings, str_size, &file_.dynamic_symbols);
  }

  bool relocations(uint64_t address, uint64_t bytes, bool with_addend) {
    if (bytes == 0) return true;
    const auto at = file_.offset_of(address, bytes);
    if (!at) return fail("the relocation table lies outside the segments");
    const uint64_t entry = with_addend ? 24 : 16;
    for (uint64_t i = 0; i < bytes / entry; ++i) {
      const uint64_t from = *at + entry * i;
      Relocation r;
      r.address = field<uint64_t>(from);
      const uint64_t info = field<uint64_t>(from + 8);
      r.type = static_cast<uint32_t>(info);
      r.symbol = static_cast<uint32_t>(info >> 32);
      if (with_addend) {
        r.addend = field<int64_t>(from + 16);
      } else {   // REL: the addend is what the relocated place holds
        if (const auto place = file_.offset_of(r.address, 8)) {
          r.addend = is_narrow(r.type) ? field<int32_t>(*place) : field<int64_t>(*place);
        }
      }
      if (r.symbol != 0 && r.symbol >= file_.dynamic_symbols.size()) {
        return fail("a relocation at " + hex(r.address) + " names a symbol that does not exist");
      }
      file_.relocations.push_back(r);
    }
    return true;
  }

  bool notes() {
    for (const Segment& s : file_.segments) {
      if (s.type != kNote) continue;
      uint64_t at = s.offset;
      const uint64_t end = s.offset + s.file_size;
      while (end - at >= 12) {
        const uint64_t name_size = field<uint32_t>(at), size = field<uint32_t>(at + 4);
        const uint64_t name = at + 12, body = name + (name_size + 3) / 4 * 4;
        if (body > end || size > end - body) return fail("a note runs past the end of its segment");
        Note note;
        note.type = field<uint32_t>(at + 8);
        note.owner.assign(reinterpret_cast<const char*>(data_ + name), name_size);
        while (!note.owner.empty() && note.owner.back() == '\0') note.owner.pop_back();
        note.offset = body;
        note.size = size;
        file_.notes.push_back(std::move(note));
        at = std::min(end, body + (size + 3) / 4 * 4);
      }
    }
    return true;
  }

  const uint8_t* data_;
  size_t size_;
  File& file_;
};

}  // namespace

std::optional<uint64_t> File::offset_of(uint64_t address, uint64_t bytes) const {
  for (const Segment& s : segments) {
    if (s.type != kLoad || address < s.address) continue;
    const uint64_t at = address - s.address;
    if (at <= s.file_size && bytes <= s.file_size - at) return s.offset + at;
  }
  return std::nullopt;
}

const Segment* File::segment_of(uint64_t address, uint64_t bytes) const {
  for (const Segment& s : segments) {
    if (s.type != kLoad || address < s.address) continue;
    const uint64_t at = address - s.address;
    if (at <= s.memory_size && bytes <= s.memory_size - at) return &s;
  }
  return nullptr;
}

bool parse(const uint8_t* data, size_t size, File* file, std::string* error) {
  Reader reader(data, size, file);
  if (reader.run()) return true;
  *error = reader.error;
  return false;
}

uint64_t promised_size(const uint8_t* data, size_t size) {
  if (size < 64 || std::memcmp(data, "\x7f" "ELF", 4) != 0 || data[4] != 2) return 0;
  auto wide = [&](uint64_t at) {
    uint64_t value;
    std::memcpy(&value, data + at, 8);
    return value;
  };
  auto narrow = [&](uint64_t at) {
    uint16_t value;
    std::memcpy(&value, data + at, 2);
    return uint64_t{value};
  };
  const uint64_t programs = wide(32), count = narrow(56);
  uint64_t end = std::max<uint64_t>(64, wide(40) + 64 * narrow(60));
  end = std::max(end, programs + 56 * count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = programs + 56 * i;
    if (at > size || size - at < 56) break;
    end = std::max(end, wide(at + 8) + wide(at + 32));
  }
  return end;
}

}  // namespace netra::elf
