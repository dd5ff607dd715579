// MessagePack, read only: the encoding of a code object's metadata note.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace netra::msgpack {

struct Value {
  enum class Type : uint8_t { nil, boolean, integer, uinteger, real, string, binary, array, map };
  Type type = Type::nil;
  bool boolean = false;
  int64_t integer = 0;       // Type::integer: a negative number
  uint64_t uinteger = 0;     // Type::uinteger: any number that is not negative
  double real = 0;
  std::string text;          // string, binary
  std::vector<Value> items;  // array; map: key, value, key, value, ...

  // Entry of a map with a string key; null when absent or when this is no map.
  const Value* find(const std::string& key) const;
};

// Reads one value that must fill the bytes. On failure returns false and says why in `error`.
bool parse(const uint8_t* data, size_t size, Value* value, std::string* error);

// One text for one meaning: JSON with the keys of every map sorted and no spaces, so that hashes
// do not depend on the order in which an assembler wrote a map.
std::string canonical(const Value& value);

}  // namespace netra::msgpack
