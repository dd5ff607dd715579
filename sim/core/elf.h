// ELF64 as AMDGPU code objects use it. Every offset is checked against the bytes that are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace netra::elf {

struct Segment {
  uint32_t type = 0, flags = 0;
  uint64_t offset = 0, address = 0, file_size = 0, memory_size = 0;
};

struct Section {
  std::string name;
  uint32_t type = 0, link = 0;
  uint64_t flags = 0, address = 0, offset = 0, size = 0, entry_size = 0;
};

struct Symbol {
  std::string name;
  uint64_t value = 0, size = 0;
  uint16_t section = 0;   // SHN_*
  uint8_t type = 0;       // STT_*
};

struct Relocation {
  uint64_t address = 0;
  uint32_t type = 0, symbol = 0;   // symbol: index into dynamic_symbols
  int64_t addend = 0;
};

struct Note {
  std::string owner;
  uint32_t type = 0;
  uint64_t offset = 0, size = 0;   // of the description, in the file
};

constexpr uint32_t kLoad = 1, kDynamic = 2, kNote = 4;             // PT_*
constexpr uint32_t kExecutable = 1, kWritable = 2;                 // PF_*
constexpr uint16_t kUndefined = 0, kAbsolute = 0xfff1;             // SHN_*
constexpr uint8_t kObject = 1, kFunction = 2;                      // STT_*

struct File {
  uint8_t os_abi = 0, abi_version = 0;
  uint16_t type = 0, machine = 0;
  uint32_t flags = 0;
  std::vector<Segment> segments;
  std::vector<Section> sections;          // empty when the file was stripped of its headers
  std::vector<Symbol> symbols;            // .symtab; empty in a stripped file
  std::vector<Symbol> dynamic_symbols;    // .dynsym
  std::vector<Relocation> relocations;    // dynamic, applied at load
  std::vector<Note> notes;

  // File offset of [address, address + bytes) when one loaded segment holds all of it in the file.
  std::optional<uint64_t> offset_of(uint64_t address, uint64_t bytes) const;
  // The loaded segment that holds all of [address, address + bytes) in memory; null when none.
  const Segment* segment_of(uint64_t address, uint64_t bytes) const;
};

// False, and one sentence in `error`, when the bytes are no complete little-endian ELF64 file.
bool parse(const uint8_t* data, size_t size, File* file, std::string* error);

// The length that the headers promise for a file of which the first `size` bytes (64 at least) are
// known; 0 when they are no ELF64 header. Images in memory come without a length: ask with 64
// bytes, then again with what that promised, since program headers may promise more.
uint64_t promised_size(const uint8_t* data, size_t size);

}  // namespace netra::elf
