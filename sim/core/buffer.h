// The buffer descriptor (V#) of both targets: address and range check.
//
// gfx950: facts measured on hardware replace the guide's formula (SOFFSET and the instruction's
// offset count, the whole element must fit, each dword for itself). gfx1151: OOB_SELECT picks the
// rule. Neither target swizzles without its enable bit.
#pragma once

#include "memory_access.h"
#include "wave.h"

namespace netra {

struct Buffer {
  uint64_t base;
  uint32_t stride, records, index_stride, element;
  uint32_t oob = 3;
  bool gfx11, swizzle, add_tid, unbound = false;

  // `typed`: the instruction converts formats, so the format bits are not a part of the stride.
  Buffer(const Wave& w, const Operand& srsrc, bool typed = false) : gfx11(w.gfx11) {
    uint32_t v[4];
    for (int k = 0; k < 4; ++k) v[k] = read_scalar(w, srsrc, k);
    base = static_cast<uint64_t>(v[1] & 0xffff) << 32 | v[0];
    if (base >> 47 & 1) base |= 0xffff000000000000ull;
    stride = v[1] >> 16 & 0x3fff;
    records = v[2];
    index_stride = 8u << (v[3] >> 21 & 3);
    add_tid = v[3] >> 23 & 1;
    if (gfx11) {
      const uint32_t mode = v[1] >> 30;
      swizzle = mode != 0;
      element = mode == 3 ? 16 : 4;
      oob = v[3] >> 28 & 3;
      unbound = v[3] >> 30 != 0 || (v[0] | v[1] | v[2] | v[3]) == 0;
    } else {
      swizzle = v[1] >> 31;
      element = 4;
      // ADD_TID on untyped accesses extends the stride by the data format's four bits.
      if (add_tid && !typed) stride |= (v[3] >> 15 & 15) << 14;
    }
  }

  bool uses_tid(bool idxen) const {
    return gfx11 ? add_tid && !idxen : add_tid && (swizzle || !idxen);
  }
  uint64_t record(bool idxen, uint32_t index, unsigned lane) const {
    if (!uses_tid(idxen)) return index;
    return gfx11 ? lane : static_cast<uint64_t>(index) + lane;
  }
  bool swizzled(bool idxen) const { return swizzle && (gfx11 ? idxen || add_tid : add_tid); }

  // `offset` is the 32-bit sum of VGPR and instruction offset, `end` the bytes of the access up to
  // and including the element that is asked about.
  bool in_range(bool idxen, uint32_t index, unsigned lane, uint32_t offset, uint32_t end,
                uint32_t soffset) const {
    const uint64_t last = static_cast<uint64_t>(offset) + end;
    if (!gfx11) {
      if (add_tid && !idxen) return true;
      if (idxen && stride) return index < records;
      return last + soffset <= records;
    }
    if (unbound) return false;
    const uint64_t r = record(idxen, index, lane);
    const bool structured = r < records && last <= stride;
    switch (oob) {
      case 0: return structured;
      case 1: return r < records;
      case 2: return records != 0;
      default: return swizzled(idxen) && stride ? structured : last + soffset <= records;
    }
  }

  // `offset` is that sum plus the place of the element in the access, which no longer wraps.
  uint64_t address(bool idxen, uint32_t index, unsigned lane, uint64_t offset, uint32_t soffset) const {
    const uint64_t r = record(idxen, index, lane);
    if (!swizzled(idxen)) return base + r * stride + offset + soffset;
    const uint64_t g = index_stride;
    return base + ((r / g) * stride + offset / element * element) * g + r % g * element +
           offset % element + soffset;
  }
};

// The memory of a buffer instruction. Operands: [vdata], vaddr, srsrc, soffset.
struct Fetch {
  Wave& w;
  const Insn& i;
  Buffer buffer;
  const uint32_t* index = nullptr;
  const uint32_t* offset = nullptr;
  uint32_t soffset;

  Fetch(Wave& wave, const Insn& insn, const Access& a, bool typed = false)
      : w(wave), i(insn), buffer(wave, insn.op[a.base], typed),
        soffset(read_scalar(wave, insn.op[a.base + 1])) {
    const Operand& v = i.op[a.vaddr];
    if (i.idxen) index = w.row(v.index);
    if (i.offen) offset = w.row(v.index + (i.idxen ? 1u : 0u));
  }
  uint32_t offset_of(unsigned lane) const {
    const uint32_t fixed = static_cast<uint32_t>(i.offset), sum = (offset ? offset[lane] : 0) + fixed;
    if (sum < fixed) tell_wrapped(w, lane, sum);
    return sum;
  }
  uint32_t index_of(unsigned lane) const { return index ? index[lane] : 0; }
  // Byte `at` of the access of a lane, `bytes` long: host memory, or null. `in_range` tells a
  // silent miss from a fault.
  uint8_t* at(unsigned lane, uint32_t at_byte, uint32_t bytes, bool write, bool* in_range) const {
    const uint32_t off = offset_of(lane), idx = index_of(lane);
    *in_range = buffer.in_range(i.idxen, idx, lane, off, at_byte + bytes, soffset);
    if (!*in_range) {
      tell_range(w, lane, buffer.address(i.idxen, idx, lane, uint64_t{off} + at_byte, soffset), bytes);
      return nullptr;
    }
    return bytes_at(lane, at_byte, bytes, write);
  }
  // The same when the range has been checked. Null after a fault.
  uint8_t* bytes_at(unsigned lane, uint32_t at_byte, uint32_t bytes, bool write) const {
    const uint64_t address = buffer.address(i.idxen, index_of(lane), lane, uint64_t{offset_of(lane)} + at_byte, soffset);
    return global_bytes(w, i, lane, address, bytes, write);
  }
};

}  // namespace netra
