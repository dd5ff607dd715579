// MUBUF: cache control. Buffer loads and stores through a V# are not here yet, and are refused.
#include "rows.h"

namespace netra {
namespace {

// One coherent memory: an invalidate or a write-back changes no value.
void cache_control(Wave&, const Insn&) {}

constexpr Row cache_row(const char* name, uint8_t archs, uint32_t mods) {
  Row r;
  r.name = name;
  r.cls = Class::mubuf;
  r.archs = archs;
  r.execute = &cache_control;
  r.mods = mods;
  return r;
}

constexpr Row kRows[] = {
    cache_row("buffer_inv", kGfx950, kModCache),
    cache_row("buffer_wbl2", kGfx950, kModCache),
    cache_row("buffer_gl0_inv", kGfx1151, 0),
    cache_row("buffer_gl1_inv", kGfx1151, 0),
};

}  // namespace

RowSpan mubuf_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra
