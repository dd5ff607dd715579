#include "format.h"

#include <cmath>
#include <cstring>

namespace netra {
namespace {

struct Layout {
  const char* name;
  uint8_t width[4];           // from the lowest bit: X, Y, Z, W
};
constexpr Layout kLayouts[16] = {
    {"INVALID", {}},
    {"8", {8}},
    {"16", {16}},
    {"8_8", {8, 8}},
    {"32", {32}},
    {"16_16", {16, 16}},
    {"10_11_11", {11, 11, 10}},
    {"11_11_10", {10, 11, 11}},
    {"10_10_10_2", {2, 10, 10, 10}},
    {"2_10_10_10", {10, 10, 10, 2}},
    {"8_8_8_8", {8, 8, 8, 8}},
    {"32_32", {32, 32}},
    {"16_16_16_16", {16, 16, 16, 16}},
    {"32_32_32", {32, 32, 32}},
    {"32_32_32_32", {32, 32, 32, 32}},
    {"RESERVED_15", {}},
};
constexpr const char* kKinds[8] = {"UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT"};

// gfx1151 numbers the pairs that exist: runs of kinds for one layout, in this order.
struct Run {
  uint8_t layout;
  const char* kinds;          // a digit for each: its NumberKind
};
constexpr Run kRuns[] = {{0, "0"},      {1, "012345"}, {2, "0123457"}, {3, "012345"}, {4, "457"},
                         {5, "0123457"}, {6, "7"},      {7, "7"},       {8, "0145"},   {9, "012345"},
                         {10, "012345"}, {11, "457"},   {12, "0123457"}, {13, "457"},  {14, "457"}};

bool find_layout(const char* text, size_t n, uint8_t* layout) {
  for (uint8_t k = 0; k < 16; ++k)
    if (std::strlen(kLayouts[k].name) == n && std::memcmp(kLayouts[k].name, text, n) == 0) return *layout = k, true;
  return false;
}
bool find_kind(const char* text, size_t n, NumberKind* kind) {
  for (uint8_t k = 0; k < 8; ++k)
    if (std::strlen(kKinds[k]) == n && std::memcmp(kKinds[k], text, n) == 0) return *kind = static_cast<NumberKind>(k), true;
  return false;
}
bool eat(const char** p, const char* word) {
  const size_t n = std::strlen(word);
  if (std::strncmp(*p, word, n) != 0) return false;
  *p += n;
  return true;
}

int32_t extended(uint32_t x, uint32_t width) {
  return static_cast<int32_t>(x << (32 - width)) >> (32 - width);
}
uint32_t bits_of(float x) {
  uint32_t b;
  std::memcpy(&b, &x, 4);
  return b;
}
float float_of(uint32_t b) {
  float x;
  std::memcpy(&x, &b, 4);
  return x;
}

// Formats with five bits of exponent: f16 (mantissa 10, signed), and the unsigned ones of 11 and 10
// bits (6 and 5). As an f32, which holds each of them; a NaN keeps its payload's upper bits.
uint32_t widened(uint32_t x, uint32_t mantissa) {
  const uint32_t sign = mantissa == 10 ? (x & 0x8000) << 16 : 0, e = x >> mantissa & 31;
  const uint32_t m = x & ((1u << mantissa) - 1);
  if (e == 31) return sign | 0x7f800000 | m << (23 - mantissa);
  const float value = std::ldexp(static_cast<float>(e ? m | 1u << mantissa : m),
                                 static_cast<int>(e ? e : 1) - 15 - static_cast<int>(mantissa));
  return sign | bits_of(value);
}
// To nearest even; `exact` tells whether nothing was lost.
uint32_t narrowed(double x, uint32_t mantissa, bool* exact) {
  const uint32_t sign = std::signbit(x) ? 1u << (mantissa + 5) : 0, infinity = 31u << mantissa;
  const double a = std::fabs(x);
  *exact = true;
  if (std::isinf(a)) return sign | infinity;
  int e = 0;
  std::frexp(a, &e);
  const int unit = (a == 0 || e < -13 ? -13 : e) - 1 - static_cast<int>(mantissa);
  const double units = std::ldexp(a, -unit), whole = std::nearbyint(units);
  const uint32_t field = static_cast<uint32_t>(unit + 15 + static_cast<int>(mantissa)) - 1;
  *exact = units == whole && unit + static_cast<int>(mantissa) <= 15;
  if (unit + static_cast<int>(mantissa) > 15) return sign | infinity;
  const uint32_t pattern = (field << mantissa) + static_cast<uint32_t>(whole);
  if (pattern >= infinity) *exact = false;
  return sign | (pattern < infinity ? pattern : infinity);
}

constexpr const char* kRounds = "no source says how a number that does not fit the format is rounded";

}  // namespace

bool Format::valid() const {
  const uint8_t* w = kLayouts[layout].width;
  if (w[0] == 0 || kind == NumberKind::reserved) return false;
  if (kind == NumberKind::floating) return w[0] >= 16 || layout == 6 || layout == 7;
  return w[0] < 32 || integer();
}
uint32_t Format::components() const {
  uint32_t n = 0;
  while (n < 4 && kLayouts[layout].width[n]) ++n;
  return n;
}
uint32_t Format::bits(uint32_t component) const { return kLayouts[layout].width[component]; }
uint32_t Format::shift(uint32_t component) const {
  uint32_t at = 0;
  for (uint32_t k = 0; k < component; ++k) at += bits(k);
  return at;
}
uint32_t Format::bytes() const { return (shift(3) + bits(3)) / 8; }

Format format_of_descriptor(uint32_t word3, bool gfx11) {
  if (!gfx11) return {static_cast<uint8_t>(word3 >> 15 & 15), static_cast<NumberKind>(word3 >> 12 & 7)};
  uint32_t number = word3 >> 12 & 63;
  for (const Run& r : kRuns) {
    const uint32_t n = static_cast<uint32_t>(std::strlen(r.kinds));
    if (number < n) return {r.layout, static_cast<NumberKind>(r.kinds[number] - '0')};
    number -= n;
  }
  return {};
}

bool parse_format(const char* p, Format* f) {
  *f = {1, NumberKind::unorm};
  if (!eat(&p, "[")) return false;
  const char* end = std::strchr(p, ']');
  if (!end || end[1]) return false;
  const auto length = [&](const char* from) {
    const char* comma = std::strchr(from, ',');
    return static_cast<size_t>((comma ? comma : end) - from);
  };
  if (eat(&p, "BUF_FMT_")) {
    if (length(p) == 7 && std::memcmp(p, "INVALID", 7) == 0) return f->layout = 0, true;
    const char* last = end;
    while (last > p && last[-1] != '_') --last;
    return last > p && find_kind(last, static_cast<size_t>(end - last), &f->kind) &&
           find_layout(p, static_cast<size_t>(last - 1 - p), &f->layout);
  }
  if (eat(&p, "BUF_DATA_FORMAT_")) {
    const size_t n = length(p);
    if (!find_layout(p, n, &f->layout)) return false;
    p += n;
    if (p == end) return true;
    ++p;
  }
  return eat(&p, "BUF_NUM_FORMAT_") && find_kind(p, static_cast<size_t>(end - p), &f->kind);
}

uint32_t component_loaded(const Format& f, uint32_t x, uint32_t width, bool d16, const char** why) {
  double value = 0;
  const double most = static_cast<double>((uint64_t{1} << (width - 1)) - 1);
  switch (f.kind) {
    case NumberKind::uint: case NumberKind::sint:
      if (d16 && width == 32) *why = kRounds;
      return f.kind == NumberKind::uint ? x : static_cast<uint32_t>(extended(x, width)) & (d16 ? 0xffff : ~0u);
    case NumberKind::floating: {
      if (d16 && width == 16) return x;
      const uint32_t wide = width == 32 ? x : widened(x, width == 16 ? 10 : width - 5);
      if (!d16) return wide;
      if (width < 16) return x << (width == 11 ? 4 : 5);   // the same exponent, a longer mantissa
      value = float_of(wide);
      if (std::isnan(value)) return (wide >> 16 & 0x8000) | 0x7e00 | (wide >> 13 & 0x3ff);
      break;
    }
    case NumberKind::uscaled: value = x; break;
    case NumberKind::sscaled: value = extended(x, width); break;
    case NumberKind::unorm: value = x / (2 * most + 1); break;
    default: value = std::fmax(-1.0, extended(x, width) / most); break;
  }
  if (!d16) return bits_of(static_cast<float>(value));
  bool exact;
  const uint32_t half = narrowed(value, 10, &exact);
  if (!exact && f.kind != NumberKind::unorm && f.kind != NumberKind::snorm) *why = kRounds;
  return half;
}

uint32_t component_stored(const Format& f, uint32_t x, uint32_t width, bool d16, const char** why) {
  const uint32_t mask = width == 32 ? ~0u : (1u << width) - 1;
  if (f.integer()) {
    const bool is_signed = f.kind == NumberKind::sint;
    const uint32_t whole = !d16 ? x : is_signed ? static_cast<uint32_t>(extended(x, 16)) : x & 0xffff;
    const bool fits = is_signed ? static_cast<uint32_t>(extended(whole & mask, width)) == whole : (whole & ~mask) == 0;
    if (!fits) *why = "no source says what an integer becomes that does not fit the format";
    return whole & mask;
  }
  const uint32_t wide = d16 ? widened(x & 0xffff, 10) : x;
  const double value = float_of(wide), most = static_cast<double>((uint64_t{1} << (width - 1)) - 1);
  if (f.kind == NumberKind::floating) {
    if (width == 32) return wide;
    if (d16 && width == 16) return x & 0xffff;
    bool exact = true;
    if (width < 16 && (std::isnan(value) || std::signbit(value))) return *why = kRounds, 0;
    if (std::isnan(value)) return (wide >> 16 & 0x8000) | 0x7e00 | (wide >> 13 & 0x3ff);
    const uint32_t narrow = narrowed(value, width == 16 ? 10 : width - 5, &exact);
    if (!exact) *why = kRounds;
    return narrow;
  }
  double whole = 0;
  switch (f.kind) {
    // Half-way cases are +-0.5 alone, and of those only -0.5 depends on the rule: to even.
    case NumberKind::unorm: whole = std::nearbyint(std::fmin(std::fmax(value, 0.0), 1.0) * (2 * most + 1)); break;
    case NumberKind::snorm: whole = std::isnan(value) ? 0 : std::nearbyint(std::fmin(std::fmax(value, -1.0), 1.0) * most); break;
    default: {
      const bool is_signed = f.kind == NumberKind::sscaled;
      const bool fits = value == std::trunc(value) && value >= (is_signed ? -most - 1 : 0) && value <= (is_signed ? most : 2 * most + 1);
      if (!fits) return *why = kRounds, 0;
      whole = value;
    }
  }
  return static_cast<uint32_t>(static_cast<int32_t>(whole)) & mask;
}

}  // namespace netra
