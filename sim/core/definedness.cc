#include "definedness.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace netra {

// Pages of zeros that cost nothing until they are touched: nothing is defined.
Definedness::Definedness(uint64_t bytes) : mapped_(bytes / 8 + 16), bytes_(bytes) {
  void* got = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got != MAP_FAILED) bits_ = static_cast<uint8_t*>(got);
}

Definedness::~Definedness() {
  if (bits_) munmap(bits_, mapped_);
}

uint64_t Definedness::undefined(uint64_t offset, uint32_t bytes) const {
  if (!bits_ || offset + bytes > bytes_) return 0;
  uint64_t low = 0;
  std::memcpy(&low, bits_ + (offset >> 3), 8);
  const uint32_t shift = offset & 7;
  low >>= shift;
  if (shift) low |= static_cast<uint64_t>(bits_[(offset >> 3) + 8]) << (64 - shift);
  return ~low & (bytes >= 64 ? ~0ull : (1ull << bytes) - 1);
}

void Definedness::set_bit(uint64_t at, bool on) {
  const uint8_t mask = static_cast<uint8_t>(1u << (at & 7));
  bits_[at >> 3] = static_cast<uint8_t>(on ? bits_[at >> 3] | mask : bits_[at >> 3] & ~mask);
}

void Definedness::set(uint64_t offset, uint64_t bytes, bool defined) {
  if (!bits_ || offset > bytes_) return;
  uint64_t at = offset;
  const uint64_t end = offset + std::min(bytes, bytes_ - offset);
  for (; at < end && at & 7; ++at) set_bit(at, defined);
  const uint64_t whole = (end - at) / 8;
  if (at < end) std::memset(bits_ + (at >> 3), defined ? 0xff : 0, whole);
  for (at += 8 * whole; at < end; ++at) set_bit(at, defined);
}

void Definedness::copy(uint64_t offset, const Definedness& from, uint64_t from_offset, uint64_t bytes) {
  if (!bits_ || offset > bytes_ || from_offset > from.bytes_) return;
  const uint64_t count = std::min({bytes, bytes_ - offset, from.bytes_ - from_offset});
  const bool up = &from == this && from_offset < offset;   // as memmove: the last byte first
  for (uint64_t k = 0; k < count; ++k) {
    const uint64_t at = up ? count - 1 - k : k;
    set_bit(offset + at, !from.bits_ || from.bit(from_offset + at));
  }
}

}  // namespace netra
