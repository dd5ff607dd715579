// Typed buffer elements: how the bits of one lie, and what a component becomes in a register.
//
// A format's name has its components from the highest bit down: in 2_10_10_10, X has the lowest ten.
#pragma once

#include <cstdint>

namespace netra {

enum class NumberKind : uint8_t { unorm, snorm, uscaled, sscaled, uint, sint, reserved, floating };

struct Format {
  uint8_t layout = 0;         // BUF_DATA_FORMAT_* of gfx950: 0 is invalid
  NumberKind kind = NumberKind::unorm;

  bool valid() const;
  uint32_t components() const;
  uint32_t bytes() const;
  uint32_t bits(uint32_t component) const;    // from X
  uint32_t shift(uint32_t component) const;   // of its lowest bit in the element
  bool integer() const { return kind == NumberKind::uint || kind == NumberKind::sint; }
};

// The format of a descriptor's third word: data and number format of gfx950, FORMAT of gfx1151.
Format format_of_descriptor(uint32_t word3, bool gfx11);
// "[BUF_FMT_8_8_UNORM]", "[BUF_DATA_FORMAT_8,BUF_NUM_FORMAT_UINT]", ...: what is not named is 8 and
// UNORM. False for anything else.
bool parse_format(const char* text, Format* format);

// A component in a register of 32 bits, or of 16 (D16). `why` is set when no source says what the
// hardware makes of it.
uint32_t component_loaded(const Format& f, uint32_t bits, uint32_t width, bool d16, const char** why);
// The other way round.
uint32_t component_stored(const Format& f, uint32_t x, uint32_t width, bool d16, const char** why);

}  // namespace netra
