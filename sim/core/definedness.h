// Which bytes of an allocation anybody has written: a bit for each byte, 1 once it is defined.
//
// Only launches that the sanitizer watches keep it up to date. A launch that nobody watches may
// write anything, so it counts as having written everything.
#pragma once

#include <cstdint>

namespace netra {

class Definedness {
 public:
  explicit Definedness(uint64_t bytes);
  ~Definedness();
  Definedness(const Definedness&) = delete;
  Definedness& operator=(const Definedness&) = delete;

  // A bit for each of at most 64 bytes from `offset`: 1 where the byte is undefined.
  uint64_t undefined(uint64_t offset, uint32_t bytes) const;
  void set(uint64_t offset, uint64_t bytes, bool defined);
  // The bytes become as defined as those of `from` are.
  void copy(uint64_t offset, const Definedness& from, uint64_t from_offset, uint64_t bytes);

 private:
  bool bit(uint64_t at) const { return bits_[at >> 3] >> (at & 7) & 1; }
  void set_bit(uint64_t at, bool on);

  uint8_t* bits_ = nullptr;   // null when the host has no memory: then all counts as defined
  uint64_t mapped_ = 0, bytes_ = 0;
};

}  // namespace netra
