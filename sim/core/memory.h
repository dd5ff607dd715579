// Device memory: named regions at high addresses, and nothing between them.
//
// A region's device address is its host address, so a copy is a memcpy; the arena lies far above
// 2^32, so an address that lost its upper half hits no region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "definedness.h"

namespace netra {

enum class RegionKind : uint8_t { device, host, code, kernarg };

struct Region {
  uint64_t base = 0;
  uint64_t size = 0;       // bytes asked for; the byte at base + size is out of bounds
  uint64_t mapped = 0;     // bytes mapped (whole pages)
  RegionKind kind = RegionKind::device;
  bool writable = true;    // by kernels
  bool foreign = false;    // the program's own memory (adopt): its pages are not ours to discard
  int device = 0;
  std::string name;        // "hipMalloc#3 (64 bytes)": what a finding prints
  std::shared_ptr<Definedness> defined;   // null: every byte is

  bool contains(uint64_t address, uint64_t bytes) const {
    return address >= base && bytes <= size && address - base <= size - bytes;
  }
};

// Immutable snapshot that a running launch reads without a lock; sorted by base.
using RegionTable = std::vector<Region>;

class Memory {
 public:
  // Returns the base address, or 0 when the host has no memory. size 0 is the caller's error.
  // Pages are zero and reserved lazily: a region of many gigabytes costs what is touched.
  uint64_t allocate(uint64_t size, RegionKind kind, int device, const std::string& label);
  // Makes memory of the program a region, for as long as the program keeps it. false when it meets
  // another region.
  bool adopt(uint64_t base, uint64_t size, RegionKind kind, int device, const std::string& label);
  // false when `address` is not the base of a region.
  bool release(uint64_t address);
  void set_writable(uint64_t base, bool writable);
  // From now on it is known which bytes of the region somebody has written: none so far.
  void track(uint64_t base);

  // One part of a region that carve() splits: bytes [offset, offset + size) of the region.
  struct Part {
    uint64_t offset = 0;
    uint64_t size = 0;
    bool writable = true;
    std::string name;
  };
  // Replaces the region at `base` by its parts, which must be in rising order, inside it, and not
  // share a page; what lies between them belongs to no region. Each part is then released by its
  // own base. false when there is no such region or the parts do not fit.
  bool carve(uint64_t base, const std::vector<Part>& parts);

  // True for an address of the arena, whether or not a region is there now: such a pointer came
  // from this class, so outside a region the host may not touch it either.
  bool in_arena(uint64_t address) const;

  ~Memory();

  std::shared_ptr<const RegionTable> table() const;

  static const Region* find(const RegionTable& table, uint64_t address);
  // The region closest to the address, and a sentence such as
  // "16 bytes past the end of hipMalloc#3 (64 bytes)"; "no region exists" when there is none.
  static std::string describe(const RegionTable& table, uint64_t address);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const RegionTable> table_ = std::make_shared<RegionTable>();
  bool reserve_arena();
  uint64_t find_gap(uint64_t bytes) const;
  void publish(std::shared_ptr<const RegionTable> table);

  uint64_t next_label_ = 1;
  uint64_t arena_ = 0, arena_size_ = 0;
  uint64_t cursor_ = 0;   // where the search for the next gap starts: freed addresses rest a while
};

}  // namespace netra
