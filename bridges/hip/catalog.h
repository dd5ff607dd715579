// catalog.bin in memory (docs/catalog-format.md), and its programs.
//
// Everything is checked when the file is opened: a Catalog that exists has no index that leads
// nowhere and no program that could fail. What follows reads without checking and without
// allocating.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "netra_bridge.h"

namespace netra::bridge {

static_assert(std::endian::native == std::endian::little, "catalog.bin is little-endian");

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

// The records, field by field as the format has them.

struct StringRecord {
  uint32_t offset, length;
};

struct Instruction {
  uint8_t code, a;
  uint16_t b;
  uint32_t c;
};

struct OpRecord {
  uint32_t name, phases, phase_count, args, arg_count, tactics, tactic_count;
  uint32_t texts[6];
};

struct OpArgRecord {
  uint32_t name;
  uint8_t kind, role, has_default, zero;
  uint32_t dtypes, dtype_count, dims, dim_count, layout, doc, default_value;
};

struct TacticRecord {
  uint32_t id, arch, op, oracle, variant, rank, maturity, hold;
  uint32_t predicates, predicate_count, launches, launch_count, workspace, zeroed_by;
  uint32_t reads, read_count, writes, write_count, commits, commit_count;
  uint32_t fallback, fallback_count, numerics[4], file, contract_line, op_line;
  uint32_t kernels, kernel_count, zero;
  uint8_t contract_sha256[32], oracle_sha256[32];
};

struct PredicateRecord {
  uint32_t id, text, program, line;
};

struct LaunchRecord {
  uint32_t kernel, grid[3], block[3], lds, args, arg_count, kernarg_size, line;
};

struct ArgRecord {
  uint32_t name, kind, offset, program, line;
};

struct KernelRecord {
  uint32_t name, arch, resources[5], kernarg_size, wave_size, max_workgroup, version, zero;
  uint8_t co_sha256[32], kernel_sha256[32];
};

enum ArgKind : uint32_t { kPtr, kU64, kI64, kF64, kU32, kI32, kF32 };

// OpArgRecord::kind.
enum SlotKind : uint8_t { kTensor, kScalarU32, kScalarI32, kScalarI64, kScalarF32, kScalarF64 };

inline bool is_real(uint8_t kind) { return kind == kScalarF32 || kind == kScalarF64; }

// What an entry of a program's stack is.
enum class Type : uint8_t { kInteger, kName, kReal };

constexpr int kLastDtype = NETRA_BOOL;
// Bytes of an element of a netra_dtype; 0 for none.
uint64_t dtype_bytes(int dtype);

class Catalog {
 public:
  // NETRA_OK, or NETRA_ERROR_CATALOG with the thread's error set. `path` is for messages.
  int read(const std::vector<uint8_t>& file, const char* path);

  const char* text(uint32_t string) const { return arena_.data() + starts_[string]; }
  // The number of a name: its string, or one that no string has.
  uint64_t name(std::string_view text) const;
  // A dtype that no contract speaks of has a number of its own.
  uint64_t dtype_name(int dtype) const { return dtypes_[static_cast<size_t>(dtype)]; }
  uint64_t unknown_layout() const { return unknown_layout_; }
  size_t string_count() const { return starts_.size(); }
  const char* path() const { return path_.c_str(); }

  std::vector<Int128> constants;
  std::vector<Instruction> code;
  std::vector<uint32_t> lists;
  std::vector<OpRecord> ops;
  std::vector<OpArgRecord> op_args;
  std::vector<TacticRecord> tactics;
  std::vector<PredicateRecord> predicates;
  std::vector<LaunchRecord> launches;
  std::vector<ArgRecord> args;
  std::vector<KernelRecord> kernels;
  std::vector<Type> arg_types;  // of the program of each of args

 private:
  friend class CatalogChecker;

  std::string path_;
  std::vector<char> arena_;            // all strings, each ended by a zero byte
  std::vector<uint32_t> starts_;       // of each string in arena_
  std::vector<uint32_t> lengths_;
  std::vector<uint32_t> alphabetical_;  // strings by their bytes
  std::array<uint64_t, kLastDtype + 1> dtypes_{};
  uint64_t unknown_layout_ = 0;
};

// ---- programs -----------------------------------------------------------------------------

union Value {
  Int128 integer;  // names too
  double real;
};

enum class Outcome : uint8_t { kValue, kOverflow, kUndefined };

// Whether a program can run in any call of an op: it ends, with one value, after at most 65535
// instructions; no instruction meets another type than it takes. Null, or what is wrong with it;
// `at` is then the instruction.
const char* check_program(const Catalog& catalog, const OpRecord& op, uint32_t start, Type* result,
                          uint32_t* at);

// Runs a program that was checked.
Outcome run_program(const Catalog& catalog, uint32_t start, const netra_call& call,
                    uint64_t workspace, Value* value);

// Offset of the last byte of a tensor, -1 when it is empty. Beyond 64 bits it may be any such.
Int128 last_byte(const netra_tensor& tensor);

}  // namespace netra::bridge
