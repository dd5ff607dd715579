// The region table and the arena behind it; memory.h says what is promised.

#include "memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace netra {
namespace {

constexpr uint64_t kPage = 4096;
// Far from anything that a Linux process maps by itself, and above 2^32 by a wide margin.
constexpr uint64_t kArenaHint = 0x2000'0000'0000;
constexpr uint64_t kArenaSize = 0x100'0000'0000;    // 1 TiB of addresses, no memory: a process may
                                                    // hold many copies of the library
constexpr uint64_t kArenaLeast = 0x10'0000'0000;    // 64 GiB, where address space is rationed
constexpr uint64_t kArenaLowest = 0x1'0000'0000;    // truncated pointers must miss every region
// Unmapped bytes between neighbours: an index that is off by a row or a tile still hits nothing.
constexpr uint64_t kGap = 1 << 20;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
uint64_t page_floor(uint64_t address) { return address & ~(kPage - 1); }
void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

bool base_less(const Region& region, uint64_t address) { return region.base < address; }

RegionTable::iterator find_base(RegionTable& table, uint64_t base) {
  auto it = std::lower_bound(table.begin(), table.end(), base, base_less);
  return it != table.end() && it->base == base ? it : table.end();
}

// Gives the pages of a range back to the host and makes them unreachable again.
void discard(uint64_t start, uint64_t bytes) {
  mmap(pointer(start), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
}

}  // namespace

Memory::~Memory() {
  if (arena_ != 0) munmap(pointer(arena_), arena_size_);
}

bool Memory::reserve_arena() {
  for (uint64_t size = kArenaSize; size >= kArenaLeast; size /= 2) {
    void* got = mmap(pointer(kArenaHint), size, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) continue;
    const uint64_t base = reinterpret_cast<uint64_t>(got);
    if (base < kArenaLowest) {
      munmap(got, size);
      continue;
    }
    arena_ = base;
    arena_size_ = size;
    cursor_ = base + kGap;
    return true;
  }
  return false;
}

// First fit from the cursor to the end of the arena, then from its start.
uint64_t Memory::find_gap(uint64_t bytes) const {
  const RegionTable& table = *table_;
  const uint64_t end = arena_ + arena_size_;
  for (uint64_t start : {cursor_, arena_ + kGap}) {
    auto it = std::lower_bound(table.begin(), table.end(), start, base_less);
    if (it != table.begin()) {
      const Region& before = *(it - 1);
      start = std::max(start, round_up(page_floor(before.base) + before.mapped + kGap, kPage));
    }
    for (;; ++it) {
      const bool last = it == table.end() || it->base >= end;   // adopted memory may lie above
      const uint64_t limit = last ? end : page_floor(it->base);
      if (start <= limit && limit - start >= bytes + kGap) return start;
      if (last) break;
      start = page_floor(it->base) + it->mapped + kGap;
    }
  }
  return 0;
}

void Memory::publish(std::shared_ptr<const RegionTable> table) { table_ = std::move(table); }

uint64_t Memory::allocate(uint64_t size, RegionKind kind, int device, const std::string& label) {
  std::lock_guard lock(mutex_);
  if (arena_ == 0 && !reserve_arena()) return 0;
  if (size == 0 || size > arena_size_) return 0;
  const uint64_t mapped = round_up(size, kPage);
  const uint64_t base = find_gap(mapped);
  if (base == 0) return 0;
  if (mprotect(pointer(base), mapped, PROT_READ | PROT_WRITE) != 0) return 0;

  Region region;
  region.base = base;
  region.size = size;
  region.mapped = mapped;
  region.kind = kind;
  region.device = device;
  region.name = label + "#" + std::to_string(next_label_++) + " (" + std::to_string(size) +
                (size == 1 ? " byte)" : " bytes)");
  auto table = std::make_shared<RegionTable>(*table_);
  table->insert(std::lower_bound(table->begin(), table->end(), base, base_less), region);
  publish(std::move(table));
  cursor_ = base + mapped + kGap;
  return base;
}

bool Memory::adopt(uint64_t base, uint64_t size, RegionKind kind, int device,
                   const std::string& label) {
  std::lock_guard lock(mutex_);
  if (size == 0 || base + size < base) return false;
  auto table = std::make_shared<RegionTable>(*table_);
  const auto it = std::lower_bound(table->begin(), table->end(), base, base_less);
  if (it != table->end() && it->base - base < size) return false;
  if (it != table->begin() && base - (it - 1)->base < (it - 1)->size) return false;
  Region region;
  region.base = base;
  region.size = size;
  region.mapped = size;
  region.kind = kind;
  region.foreign = true;
  region.device = device;
  region.name = label + "#" + std::to_string(next_label_++) + " (" + std::to_string(size) +
                (size == 1 ? " byte)" : " bytes)");
  table->insert(it, region);
  publish(std::move(table));
  return true;
}

bool Memory::release(uint64_t address) {
  std::lock_guard lock(mutex_);
  auto table = std::make_shared<RegionTable>(*table_);
  auto it = find_base(*table, address);
  if (it == table->end()) return false;
  const uint64_t start = page_floor(it->base), mapped = it->mapped;
  const bool foreign = it->foreign;
  table->erase(it);
  publish(std::move(table));
  if (!foreign) discard(start, mapped);
  return true;
}

void Memory::track(uint64_t base) {
  std::lock_guard lock(mutex_);
  auto table = std::make_shared<RegionTable>(*table_);
  auto it = find_base(*table, base);
  if (it == table->end()) return;
  it->defined = std::make_shared<Definedness>(it->size);
  publish(std::move(table));
}

void Memory::set_writable(uint64_t base, bool writable) {
  std::lock_guard lock(mutex_);
  auto table = std::make_shared<RegionTable>(*table_);
  auto it = find_base(*table, base);
  if (it == table->end()) return;
  it->writable = writable;
  publish(std::move(table));
}

bool Memory::carve(uint64_t base, const std::vector<Part>& parts) {
  std::lock_guard lock(mutex_);
  auto table = std::make_shared<RegionTable>(*table_);
  auto it = find_base(*table, base);
  if (it == table->end()) return false;
  const Region whole = *it;
  std::vector<Region> made;
  uint64_t page = whole.base;   // first page that no part holds yet
  for (const Part& part : parts) {
    if (part.size == 0 || part.offset > whole.size || part.size > whole.size - part.offset) {
      return false;
    }
    Region region = whole;
    region.base = whole.base + part.offset;
    region.size = part.size;
    region.writable = part.writable;
    region.name = part.name;
    const uint64_t first = page_floor(region.base);
    const uint64_t last = round_up(region.base + region.size, kPage);
    if (first < page) return false;
    region.mapped = last - first;
    if (first > page) discard(page, first - page);
    page = last;
    made.push_back(region);
  }
  const uint64_t end = whole.base + whole.mapped;
  if (end > page) discard(page, end - page);
  it = table->erase(it);
  table->insert(it, made.begin(), made.end());
  publish(std::move(table));
  return true;
}

bool Memory::in_arena(uint64_t address) const {
  std::lock_guard lock(mutex_);
  return arena_ != 0 && address >= arena_ && address - arena_ < arena_size_;
}

std::shared_ptr<const RegionTable> Memory::table() const {
  std::lock_guard lock(mutex_);
  return table_;
}

const Region* Memory::find(const RegionTable& table, uint64_t address) {
  auto it = std::upper_bound(table.begin(), table.end(), address,
                             [](uint64_t a, const Region& region) { return a < region.base; });
  if (it == table.begin()) return nullptr;
  --it;
  return address - it->base < it->size ? &*it : nullptr;
}

std::string Memory::describe(const RegionTable& table, uint64_t address) {
  auto count = [](uint64_t bytes) {
    return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  };
  if (table.empty()) return "no region exists";
  auto after = std::upper_bound(table.begin(), table.end(), address,
                                [](uint64_t a, const Region& region) { return a < region.base; });
  const uint64_t before_start = after == table.end() ? UINT64_MAX : after->base - address;
  if (after != table.begin()) {
    const Region& before = *(after - 1);
    const uint64_t offset = address - before.base;
    if (offset < before.size) return "at byte " + std::to_string(offset) + " of " + before.name;
    const uint64_t past = offset - before.size;
    if (past <= before_start) return count(past) + " past the end of " + before.name;
  }
  return count(before_start) + " before the start of " + after->name;
}

}  // namespace netra
