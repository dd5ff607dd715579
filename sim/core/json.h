// The little JSON that the simulator writes. Reading JSON is Python's affair.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace netra::json {

// A JSON string literal. Bytes that are not UTF-8 are possible in symbol names; they are written
// as \u00XX, so the document stays valid.
inline std::string quote(const std::string& text) {
  std::string out = "\"";
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    const uint8_t c = bytes[i];
    size_t follow = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2
                    : c >= 0xf0 && c < 0xf5 ? 3 : SIZE_MAX;
    bool valid = follow != SIZE_MAX && follow < text.size() - i;
    for (size_t k = 1; valid && k <= follow; ++k) valid = (bytes[i + k] & 0xc0) == 0x80;
    if (valid && follow == 2) {   // no overlong forms, no surrogates
      valid = !(c == 0xe0 && bytes[i + 1] < 0xa0) && !(c == 0xed && bytes[i + 1] >= 0xa0);
    } else if (valid && follow == 3) {
      valid = !(c == 0xf0 && bytes[i + 1] < 0x90) && !(c == 0xf4 && bytes[i + 1] >= 0x90);
    }
    if (valid && c >= 0x20 && c != '"' && c != '\\') {
      out.append(text, i, follow + 1);
      i += follow + 1;
      continue;
    }
    char escaped[8];
    if (c == '"' || c == '\\') {
      std::snprintf(escaped, sizeof escaped, "\\%c", c);
    } else if (c == '\n') {
      std::snprintf(escaped, sizeof escaped, "\\n");
    } else {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
    }
    out += escaped;
    ++i;
  }
  return out + '"';
}

// Writes objects and arrays with the commas in the right places; the caller nests correctly.
class Writer {
 public:
  Writer& open(char bracket) { separate(); text_ += bracket; first_ = true; return *this; }
  Writer& close(char bracket) { text_ += bracket; first_ = false; return *this; }
  Writer& key(const std::string& name) {
    separate();
    text_ += quote(name) + ":";
    first_ = true;   // the value follows without a comma
    return *this;
  }
  Writer& string(const std::string& value) { return raw(quote(value)); }
  Writer& number(uint64_t value) { return raw(std::to_string(value)); }
  Writer& boolean(bool value) { return raw(value ? "true" : "false"); }
  Writer& null() { return raw("null"); }
  const std::string& text() const { return text_; }

 private:
  Writer& raw(const std::string& value) { separate(); text_ += value; return *this; }
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  std::string text_;
  bool first_ = true;
};

}  // namespace netra::json
