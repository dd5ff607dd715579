// MUBUF: loads, stores, atomics and LDS DMA through a buffer descriptor (V#), and cache control.
//
// The descriptor's range check is silent on hardware and here: out of range a load gives 0 and a
// store is dropped. An address inside the range but outside every region is a fault.
#include "buffer.h"
#include "memory_access.h"
#include "rows.h"
#include "switches.h"

namespace netra {
namespace {

void load(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const Fetch f(w, i, a);
  const uint32_t n = a.part == Part::dwords ? a.dwords : 1;
  const uint32_t step = a.part == Part::dwords ? 4 : a.bytes();
  alignas(64) uint32_t out[4][64];
  const uint32_t* old = w.row(i.op[0].index);
  static constexpr uint8_t kZero[4] = {};
  const bool keep = w.gfx11 || switches().d16_vmem_preserve;
  const uint64_t exec = w.exec();
  for (uint64_t m = exec; m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    for (uint32_t k = 0; k < n; ++k) {
      bool in_range;
      const uint8_t* p = f.at(l, 4 * k, step, false, &in_range);
      if (!p && in_range) return;
      if (!p) p = kZero;
      if (a.part == Part::dwords) std::memcpy(&out[k][l], p, 4);
      else out[0][l] = loaded(a.part, p, keep ? old[l] : 0);
    }
  }
  for (uint32_t k = 0; k < n; ++k) {
    uint32_t* d = w.row(i.op[0].index + k);
    for (uint64_t m = exec; m; m &= m - 1) {
      const int l = std::countr_zero(m);
      d[l] = out[k][l];
    }
  }
}

void store(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const Fetch f(w, i, a);
  const uint32_t n = a.part == Part::dwords ? a.dwords : 1;
  const uint32_t step = a.part == Part::dwords ? 4 : a.bytes();
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    for (uint32_t k = 0; k < n; ++k) {
      bool in_range;
      uint8_t* p = f.at(l, 4 * k, step, true, &in_range);
      if (!p && in_range) return;
      if (!p) continue;
      const uint32_t x = w.row(i.op[0].index + k)[l];
      if (a.part == Part::dwords) std::memcpy(p, &x, 4);
      else stored(a.part, p, x);
    }
  }
}

// All or nothing; the old value comes back in the data registers when sc0 (glc) is set.
void atomic(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const Fetch f(w, i, a);
  const auto op = static_cast<AtomicOp>(a.dwords);
  const uint32_t words = a.part == Part::u16 ? 2 : 1, bytes = 4 * words;
  uint32_t* d = w.row(i.op[0].index);
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    bool in_range;
    uint8_t* p = f.at(l, 0, bytes, true, &in_range);
    if (!p && in_range) return;
    uint64_t old = 0;
    if (p) {
      if (reinterpret_cast<uintptr_t>(p) % bytes)
        return fault_address(w, i, l, reinterpret_cast<uintptr_t>(p), bytes, "misaligned atomic");
      const uint64_t compare = atomic_compares(op) ? lane_word(w, d + words * w.lanes, l, words) : 0;
      old = atomic_apply(op, bytes, p, lane_word(w, d, l, words), compare, atomic_denorms(w, op, false));
    }
    if (!i.sc0) continue;
    d[l] = static_cast<uint32_t>(old);
    if (words == 2) d[w.lanes + l] = static_cast<uint32_t>(old >> 32);
  }
}

// buffer_load ... lds: LDS byte = M0[17:0] + inst_offset + lane * S. A lane that is out of the
// buffer's range writes 0.
void load_lds(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const Fetch f(w, i, a);
  const uint32_t n = a.part == Part::dwords ? a.dwords : 1;
  const uint32_t step = a.part == Part::dwords ? 4 : a.bytes();
  const uint32_t base = (w.s[kM0] & 0x3ffff) + static_cast<uint32_t>(i.offset);
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    uint8_t* to = lds_bytes(w, i, l, base + l * lds_dma_stride(a), 4 * n);
    if (!to) return;
    for (uint32_t k = 0; k < n; ++k) {
      static constexpr uint8_t kZero[4] = {};
      bool in_range;
      const uint8_t* p = f.at(l, 4 * k, step, false, &in_range);
      if (!p && in_range) return;
      if (!p) p = kZero;
      uint32_t x;
      if (a.part == Part::dwords) std::memcpy(&x, p, 4);
      else x = loaded(a.part, p, 0);
      std::memcpy(to + 4 * k, &x, 4);
    }
  }
}

// One coherent memory: an invalidate or a write-back changes no value.
void cache_control(Wave&, const Insn&) {}

constexpr uint32_t kMods = kModOffset | kModCache | kModOffen | kModIdxen;
constexpr Slot reg(Role role, uint32_t n) { return {Type::wide, role, static_cast<uint8_t>(n)}; }
constexpr Slot kAddress = {Type::wide, kRead, 0};

constexpr Row base_row(const char* name, uint8_t archs, Execute execute, uint32_t flags) {
  Row r;
  r.name = name, r.cls = Class::mubuf, r.archs = archs, r.execute = execute, r.mods = kMods, r.flags = flags;
  return r;
}
constexpr void descriptor_slots(Row* r) {
  r->slot[r->slots++] = kAddress;
  r->slot[r->slots++] = reg(kRead, 4);
  r->slot[r->slots++] = {Type::u32, kRead, 0};
}
constexpr Row data_row(const char* name, uint8_t archs, bool is_load, Part part, uint32_t n) {
  Row r = base_row(name, archs, is_load ? &load : &store, is_load ? kLoad : kStore);
  const bool d16 = part >= Part::u8_hi;
  r.slot[r.slots++] = reg(!is_load ? kRead : d16 ? kReadWrite : kWrite, n);
  descriptor_slots(&r);
  r.data = access_data(part, n, 1, 2, 0);
  return r;
}
constexpr Row lds_row(const char* name, Part part, uint32_t n) {
  Row r = base_row(name, kGfx950, &load_lds, kLoad | kLdsRow | kReadsM0);
  r.mods |= kModLds;
  descriptor_slots(&r);
  r.data = access_data(part, n, 0, 1, 0);
  return r;
}
constexpr Row atomic_row(const char* name, uint8_t archs, AtomicOp op, uint32_t words) {
  Row r = base_row(name, archs, &atomic, kAtomic);
  r.slot[r.slots++] = reg(kReadWrite, words * (atomic_compares(op) ? 2 : 1));
  descriptor_slots(&r);
  r.data = access_data(words == 2 ? Part::u16 : Part::u8, static_cast<uint32_t>(op), 1, 2, 0);
  return r;
}
constexpr Row cache_row(const char* name, uint8_t archs, uint32_t mods) {
  Row r = base_row(name, archs, &cache_control, 0);
  r.mods = mods;
  return r;
}

constexpr Row kRows[] = {
#define NETRA_BUFFER_LOAD(a, b, part, n)                 \
  data_row("buffer_load_" a, kGfx950, true, part, n),    \
  data_row("buffer_load_" b, kGfx1151, true, part, n),
#define NETRA_BUFFER_STORE(a, b, part, n)                \
  data_row("buffer_store_" a, kGfx950, false, part, n),  \
  data_row("buffer_store_" b, kGfx1151, false, part, n),
    NETRA_LOADS(NETRA_BUFFER_LOAD)
    NETRA_STORES(NETRA_BUFFER_STORE)
    lds_row("buffer_load_ubyte", Part::u8, 1),
    lds_row("buffer_load_sbyte", Part::i8, 1),
    lds_row("buffer_load_ushort", Part::u16, 1),
    lds_row("buffer_load_sshort", Part::i16, 1),
    lds_row("buffer_load_dword", Part::dwords, 1),
    lds_row("buffer_load_dwordx3", Part::dwords, 3),
    lds_row("buffer_load_dwordx4", Part::dwords, 4),
#define NETRA_ATOMIC(arch, name, op, words) atomic_row("buffer_atomic_" name, arch, AtomicOp::op, words),
#include "sem/atomic.inc"
    cache_row("buffer_inv", kGfx950, kModCache),
    cache_row("buffer_wbl2", kGfx950, kModCache),
    cache_row("buffer_gl0_inv", kGfx1151, 0),
    cache_row("buffer_gl1_inv", kGfx1151, 0),
};

}  // namespace

RowSpan mubuf_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra
