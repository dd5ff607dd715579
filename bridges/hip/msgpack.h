// Just enough MessagePack to walk a code object's metadata: bounded, and never ahead of the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace netra::bridge {

class Msgpack {
 public:
  Msgpack(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  // False once anything was malformed or of another type than asked for; it stays so.
  bool good() const { return good_; }

  // Number of pairs of a map, of elements of an array. A count that the bytes left cannot hold is
  // malformed (an element takes a byte at least).
  uint32_t map() { return container(0x80, 0x8f, 0xde); }
  uint32_t array() { return container(0x90, 0x9f, 0xdc); }

  std::string_view string() {
    const uint8_t tag = byte();
    if (tag >= 0xa0 && tag <= 0xbf) return bytes(tag & 31);
    if (tag >= 0xd9 && tag <= 0xdb) return bytes(big_endian(1u << (tag - 0xd9)));
    good_ = false;
    return {};
  }

  // A non-negative integer.
  uint64_t number() {
    const uint8_t tag = byte();
    if (tag <= 0x7f) return tag;
    if (tag >= 0xcc && tag <= 0xcf) return big_endian(1u << (tag - 0xcc));
    if (tag >= 0xd0 && tag <= 0xd3) {
      const unsigned width = 1u << (tag - 0xd0);
      const uint64_t value = big_endian(width);
      if ((value >> (8 * width - 1) & 1) == 0) return value;
    }
    good_ = false;
    return 0;
  }

  // Steps over one value of any type.
  void skip(int depth = 0) {
    if (!good_ || depth > 32) {
      good_ = false;
      return;
    }
    if (at_ == end_) {
      good_ = false;
      return;
    }
    const uint8_t tag = *at_;
    if ((tag >= 0x80 && tag <= 0x8f) || tag == 0xde || tag == 0xdf) {
      for (uint32_t left = map(); left != 0 && good_; --left) {
        skip(depth + 1);
        skip(depth + 1);
      }
    } else if ((tag >= 0x90 && tag <= 0x9f) || tag == 0xdc || tag == 0xdd) {
      for (uint32_t left = array(); left != 0 && good_; --left) skip(depth + 1);
    } else if ((tag >= 0xa0 && tag <= 0xbf) || (tag >= 0xd9 && tag <= 0xdb)) {
      string();
    } else {
      ++at_;
      if (tag <= 0x7f || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3) return;
      if (tag >= 0xc4 && tag <= 0xc6) bytes(big_endian(1u << (tag - 0xc4)));        // bin
      else if (tag >= 0xc7 && tag <= 0xc9) bytes(big_endian(1u << (tag - 0xc7)) + 1);  // ext
      else if (tag == 0xca) bytes(4);
      else if (tag == 0xcb) bytes(8);
      else if (tag >= 0xcc && tag <= 0xcf) bytes(1u << (tag - 0xcc));
      else if (tag >= 0xd0 && tag <= 0xd3) bytes(1u << (tag - 0xd0));
      else if (tag >= 0xd4 && tag <= 0xd8) bytes((1u << (tag - 0xd4)) + 1);  // fixext
      else good_ = false;
    }
  }

 private:
  uint8_t byte() {
    if (!good_ || at_ == end_) {
      good_ = false;
      return 0xc1;  // the tag that is never used
    }
    return *at_++;
  }

  std::string_view bytes(uint64_t count) {
    if (!good_ || count > static_cast<uint64_t>(end_ - at_)) {
      good_ = false;
      return {};
    }
    const std::string_view view(reinterpret_cast<const char*>(at_), static_cast<size_t>(count));
    at_ += count;
    return view;
  }

  uint64_t big_endian(unsigned width) {
    uint64_t value = 0;
    for (char c : bytes(width)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }

  // The 16-bit form has the tag `wide`, the 32-bit one the next.
  uint32_t container(uint8_t low, uint8_t high, uint8_t wide) {
    const uint8_t tag = byte();
    uint64_t count = 0;
    if (tag >= low && tag <= high) count = tag & 15;
    else if (tag == wide) count = big_endian(2);
    else if (tag == wide + 1) count = big_endian(4);
    else good_ = false;
    if (count > static_cast<uint64_t>(end_ - at_)) good_ = false;
    return good_ ? static_cast<uint32_t>(count) : 0;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  bool good_ = true;
};

}  // namespace netra::bridge
