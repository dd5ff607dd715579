// Every length is compared with what is left before it is believed, and nesting is limited: the
// bytes come from a file that may be damaged or hostile.

#include "msgpack.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "json.h"

namespace netra::msgpack {
namespace {

constexpr int kDeepest = 32;   // metadata nests 4 deep

class Parser {
 public:
  Parser(const uint8_t* data, size_t size) : at_(data), left_(size) {}

  bool value(Value* out, int depth) {
    uint8_t tag = 0;
    if (depth > kDeepest) return fail("nested too deeply");
    if (!byte(&tag)) return false;
    if (tag < 0x80) return number(out, tag);
    if (tag < 0x90) return items(out, Value::Type::map, tag & 15, depth);
    if (tag < 0xa0) return items(out, Value::Type::array, tag & 15, depth);
    if (tag < 0xc0) return text(out, Value::Type::string, tag & 31);
    if (tag >= 0xe0) return negative(out, static_cast<int8_t>(tag));
    uint64_t n = 0;
    switch (tag) {
      case 0xc0: return true;
      case 0xc2: case 0xc3:
        out->type = Value::Type::boolean;
        out->boolean = tag == 0xc3;
        return true;
      case 0xc4: case 0xc5: case 0xc6:
        return big(&n, 1 << (tag - 0xc4)) && text(out, Value::Type::binary, n);
      case 0xca:
        if (!big(&n, 4)) return false;
        out->type = Value::Type::real;
        out->real = std::bit_cast<float>(static_cast<uint32_t>(n));
        return true;
      case 0xcb:
        if (!big(&n, 8)) return false;
        out->type = Value::Type::real;
        out->real = std::bit_cast<double>(n);
        return true;
      case 0xcc: case 0xcd: case 0xce: case 0xcf:
        return big(&n, 1 << (tag - 0xcc)) && number(out, n);
      case 0xd0: return big(&n, 1) && negative(out, static_cast<int8_t>(n));
      case 0xd1: return big(&n, 2) && negative(out, static_cast<int16_t>(n));
      case 0xd2: return big(&n, 4) && negative(out, static_cast<int32_t>(n));
      case 0xd3: return big(&n, 8) && negative(out, static_cast<int64_t>(n));
      case 0xd9: case 0xda: case 0xdb:
        return big(&n, 1 << (tag - 0xd9)) && text(out, Value::Type::string, n);
      case 0xdc: case 0xdd:
        return big(&n, 2 << (tag - 0xdc)) && items(out, Value::Type::array, n, depth);
      case 0xde: case 0xdf:
        return big(&n, 2 << (tag - 0xde)) && items(out, Value::Type::map, n, depth);
      default: return fail("has a type that metadata never uses");
    }
  }

  bool fail(const char* why) {
    if (error.empty()) error = why;
    return false;
  }

  size_t left() const { return left_; }
  std::string error;

 private:
  bool byte(uint8_t* out) {
    if (left_ == 0) return fail("ends too early");
    *out = *at_++;
    --left_;
    return true;
  }

  bool big(uint64_t* out, int bytes) {
    *out = 0;
    for (int i = 0; i < bytes; ++i) {
      uint8_t b = 0;
      if (!byte(&b)) return false;
      *out = *out << 8 | b;
    }
    return true;
  }

  bool number(Value* out, uint64_t n) {
    out->type = Value::Type::uinteger;
    out->uinteger = n;
    return true;
  }

  // The signed encodings may hold a number that is not negative; it must hash like any other.
  bool negative(Value* out, int64_t n) {
    if (n >= 0) return number(out, static_cast<uint64_t>(n));
    out->type = Value::Type::integer;
    out->integer = n;
    return true;
  }

  bool text(Value* out, Value::Type type, uint64_t size) {
    if (size > left_) return fail("ends too early");
    out->type = type;
    out->text.assign(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    left_ -= size;
    return true;
  }

  bool items(Value* out, Value::Type type, uint64_t count, int depth) {
    if (type == Value::Type::map) count *= 2;
    if (count > left_) return fail("ends too early");   // an item is at least one byte
    out->type = type;
    for (uint64_t i = 0; i < count; ++i) {
      Value item;
      if (!value(&item, depth + 1)) return false;
      out->items.push_back(std::move(item));
    }
    return true;
  }

  const uint8_t* at_;
  size_t left_;
};

}  // namespace

const Value* Value::find(const std::string& key) const {
  if (type != Type::map) return nullptr;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].type == Type::string && items[i].text == key) return &items[i + 1];
  }
  return nullptr;
}

bool parse(const uint8_t* data, size_t size, Value* value, std::string* error) {
  Parser parser(data, size);
  if (parser.value(value, 0) && parser.left() != 0) parser.fail("has bytes after its end");
  if (parser.error.empty()) return true;
  *error = parser.error;
  return false;
}

std::string canonical(const Value& value) {
  switch (value.type) {
    case Value::Type::nil: return "null";
    case Value::Type::boolean: return value.boolean ? "true" : "false";
    case Value::Type::integer: return std::to_string(value.integer);
    case Value::Type::uinteger: return std::to_string(value.uinteger);
    case Value::Type::real: {
      char text[32];
      std::snprintf(text, sizeof text, "%.17g", value.real);
      return text;
    }
    case Value::Type::string: case Value::Type::binary: return json::quote(value.text);
    case Value::Type::array: {
      std::string text = "[";
      for (const Value& item : value.items) {
        if (text.size() > 1) text += ',';
        text += canonical(item);
      }
      return text + ']';
    }
    case Value::Type::map: {
      std::vector<std::string> entries;
      for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
        entries.push_back(canonical(value.items[i]) + ':' + canonical(value.items[i + 1]));
      }
      std::sort(entries.begin(), entries.end());
      std::string text = "{";
      for (const std::string& entry : entries) {
        if (text.size() > 1) text += ',';
        text += entry;
      }
      return text + '}';
    }
  }
  return "null";
}

}  // namespace netra::msgpack
