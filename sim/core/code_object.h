// A loaded AMDGCN code object: ELF segments in a region, kernels with descriptor and metadata.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory.h"

namespace netra {

struct KernelArg {
  std::string name;
  std::string value_kind;  // "global_buffer", "by_value", "hidden_block_count_x", ...
  uint32_t offset = 0;
  uint32_t size = 0;
};

// The 64-byte kernel descriptor, decoded (LLVM AMDGPUUsage, "Kernel Descriptor").
struct Descriptor {
  std::array<uint8_t, 64> raw{};
  uint32_t lds_bytes = 0;
  uint32_t scratch_bytes = 0;      // per lane
  uint32_t kernarg_bytes = 0;
  int64_t entry_offset = 0;        // from the descriptor
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;
  uint16_t preload = 0;            // {offset[15:7], length[6:0]} in dwords
  bool wave32 = false;
  bool dynamic_stack = false;
  uint32_t vgprs_allocated = 0;    // granules times granule, arch + acc
  uint32_t accum_offset = 0;       // first AGPR in the unified file (gfx950), else vgprs_allocated
  uint32_t sgprs_allocated = 0;    // 0 where the target does not encode it (gfx1151)
};

struct Kernel {
  std::string name;                // symbol without ".kd"
  Descriptor descriptor;
  uint64_t descriptor_address = 0; // loaded
  uint64_t entry = 0;              // loaded address of the first instruction
  uint64_t code_size = 0;          // st_size of the function symbol
  bool has_metadata = false;
  std::vector<KernelArg> args;
  uint32_t meta_kernarg_bytes = 0, meta_lds_bytes = 0, meta_scratch_bytes = 0;
  uint32_t meta_vgprs = 0, meta_agprs = 0, meta_sgprs = 0, meta_wave_size = 0;
  uint32_t meta_max_workgroup = 0;
  std::string sha256;              // kernel_sha256
};

struct Symbol {
  std::string name;
  uint64_t value = 0;              // ELF value (not loaded)
  uint64_t size = 0;
  bool absolute = false;           // an .equiv name: register maps travel this way
  bool function = false;
};

struct CodeObject {
  std::string name;                // file name or "<memory>", for messages
  std::string arch;                // "gfx950"
  int version = 0;                 // code object version, 4..6
  std::string sha256;              // co_sha256
  std::vector<uint8_t> image;      // the ELF file as given
  uint64_t load_base = 0;          // loaded address = ELF address + load_base
  uint64_t text_address = 0, text_size = 0;   // ELF address of .text
  struct Code {
    uint64_t address = 0, size = 0;
  };
  std::vector<Code> code;          // executable segments, by rising ELF address
  std::vector<Kernel> kernels;
  std::vector<Symbol> symbols;
  std::vector<uint64_t> regions;   // bases in Memory

  // Whether [address, address + bytes), an ELF address, is code that the file holds.
  bool has_code(uint64_t address, uint64_t bytes) const {
    for (const Code& c : code)
      if (address >= c.address && address - c.address <= c.size && bytes <= c.size - (address - c.address)) return true;
    return false;
  }
};

// Parses and checks; throws nothing. On failure returns null, sets `error` to one sentence that
// tells what is wrong with the file, and `hip_error` to the HIP code for it.
// `memory` null: parse only (load_base 0), for inspection.
std::shared_ptr<CodeObject> load_code_object(const void* image, size_t size, const std::string& name,
                                             Memory* memory, int device, std::string* error,
                                             int* hip_error);

}  // namespace netra
