// FLAT, GLOBAL, SCRATCH: loads, stores and atomics through 64-bit addresses.
//
// Addresses (ISA guides, "Flat memory instructions"): global is vaddr64 + offset, or saddr64 plus a
// zero-extended 32-bit VGPR plus offset; scratch is a per-lane byte offset; flat picks LDS,
// scratch or global by the upper half of the address.
#include "memory_access.h"
#include "rows.h"
#include "switches.h"

namespace netra {
namespace {

// Upper halves of the shared and private apertures (amdkfd's values for gfx9 and gfx11).
constexpr uint32_t kSharedHigh = 0x00010000, kPrivateHigh = 0x00020000;

uint8_t* scratch_bytes_at(Wave& w, const Insn& i, unsigned lane, uint32_t offset, uint32_t bytes) {
  if (offset > w.scratch_limit || bytes > w.scratch_limit - offset)
    return scratch_bytes_slow(w, i, lane, offset, bytes);
  return w.scratch + static_cast<size_t>(lane) * w.scratch_bytes + offset;
}

// The address of a lane, by class: its memory, and the host's address of that.
struct Resolver {
  Wave& w;
  const Insn& i;
  const Access a;
  const uint32_t* lo = nullptr;
  const uint32_t* hi = nullptr;
  uint64_t base = 0;
  bool is_flat, is_scratch;

  Resolver(Wave& wave, const Insn& insn, Access access)
      : w(wave), i(insn), a(access), is_flat(insn.cls == Class::flat),
        is_scratch(insn.cls == Class::scratch) {
    const Operand& v = i.op[a.vaddr];
    if (v.kind == Kind::vgpr) {
      lo = w.row(v.index);
      if (v.dwords == 2) hi = lo + w.lanes;
    }
    if (!is_flat) {
      const Operand& s = i.op[a.base];
      if (s.kind != Kind::off) base = is_scratch ? read_scalar(w, s) : read_scalar64(w, s);
    }
  }
  uint64_t address(unsigned lane, Space* space) const {
    if (is_scratch) {
      *space = Space::scratch;   // 32 bits; a negative sum lies past every allocation
      return (lo ? lo[lane] : 0) + static_cast<uint32_t>(base) + static_cast<uint32_t>(i.offset);
    }
    uint64_t at = base + (lo ? lo[lane] : 0);
    if (hi) at += static_cast<uint64_t>(hi[lane]) << 32;
    at += static_cast<uint64_t>(static_cast<int64_t>(i.offset));
    *space = Space::global;
    if (is_flat) {
      const uint32_t high = static_cast<uint32_t>(at >> 32);
      if (high == kSharedHigh) *space = Space::lds, at = static_cast<uint32_t>(at);
      if (high == kPrivateHigh) *space = Space::scratch, at = static_cast<uint32_t>(at);
    }
    return at;
  }
  // Host memory of `bytes` bytes there, or null after a fault.
  uint8_t* bytes_at(unsigned lane, Space space, uint64_t at, uint32_t bytes, bool write) const {
    switch (space) {
      case Space::lds: return lds_bytes(w, i, lane, static_cast<uint32_t>(at), bytes);
      case Space::scratch: return scratch_bytes_at(w, i, lane, static_cast<uint32_t>(at), bytes);
      case Space::global: break;
    }
    uint8_t* p = global_bytes(w, i, lane, at, bytes, write);
    if (!p && lo && !hi && lo[lane] >> 31 && !is_flat)
      w.fault += "\n  the VGPR's offset counts as unsigned: a negative one lies 4 GiB further up, and so does one that wrapped";
    return p;
  }
  uint8_t* at(unsigned lane, uint32_t bytes, bool write) const {
    Space space;
    const uint64_t where = address(lane, &space);
    return bytes_at(lane, space, where, bytes, write);
  }
};

void load(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const Resolver r(w, i, a);
  const uint64_t exec = w.exec();
  const uint32_t bytes = a.bytes();
  // Addresses may sit in the registers that the load writes: collect first.
  alignas(64) uint32_t out[4][64];
  uint32_t* d = w.row(i.op[0].index);
  const bool keep = w.gfx11 || switches().d16_vmem_preserve;
  for (uint64_t m = exec; m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    const uint8_t* p = r.at(l, bytes, false);
    if (!p) return;
    if (a.part == Part::dwords) {
      for (uint32_t k = 0; k < a.dwords; ++k) std::memcpy(&out[k][l], p + 4 * k, 4);
    } else {
      out[0][l] = loaded(a.part, p, keep ? d[l] : 0);
    }
  }
  const uint32_t n = a.part == Part::dwords ? a.dwords : 1;
  for (uint32_t k = 0; k < n; ++k, d += w.lanes) {
    if (exec == w.lane_mask) std::memcpy(d, out[k], w.lanes * 4);
    else
      for (uint64_t m = exec; m; m &= m - 1) {
        const int l = std::countr_zero(m);
        d[l] = out[k][l];
      }
  }
}

void store(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const Resolver r(w, i, a);
  const uint32_t bytes = a.bytes();
  const uint32_t* d = w.row(i.op[a.data].index);
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    uint8_t* p = r.at(l, bytes, true);
    if (!p) return;
    if (a.part == Part::dwords)
      for (uint32_t k = 0; k < a.dwords; ++k) std::memcpy(p + 4 * k, d + k * w.lanes + l, 4);
    else
      stored(a.part, p, d[l]);
  }
}

// global_load_lds_*, scratch_load_lds_*: LDS byte = M0[17:2] * 4 + inst_offset + lane * S, where the
// instruction's offset counts in both addresses.
void load_lds(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const Resolver r(w, i, a);
  const uint32_t n = a.part == Part::dwords ? a.dwords : 1;
  const uint32_t base = (w.s[kM0] & 0x3fffc) + static_cast<uint32_t>(i.offset);
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    const uint8_t* p = r.at(l, a.bytes(), false);
    uint8_t* to = p ? lds_bytes(w, i, l, base + l * lds_dma_stride(a), 4 * n) : nullptr;
    if (!to) return;
    if (a.part == Part::dwords) {
      std::memcpy(to, p, 4 * n);
    } else {
      const uint32_t x = loaded(a.part, p, 0);
      std::memcpy(to, &x, 4);
    }
  }
}

// gfx11's addtid forms: saddr + offset + 4 * lane, no address register.
template <bool Store>
void addtid(Wave& w, const Insn& i) {
  const uint64_t saddr = i.op[1].kind == Kind::off ? 0 : read_scalar64(w, i.op[1]);
  const uint64_t base = saddr + static_cast<uint64_t>(static_cast<int64_t>(i.offset));
  uint32_t* d = w.row(i.op[0].index);
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    uint8_t* p = global_bytes(w, i, l, base + 4 * l, 4, Store);
    if (!p) return;
    if (Store) std::memcpy(p, d + l, 4);
    else std::memcpy(d + l, p, 4);
  }
}

// An atomic row's access_data: the operation in place of `dwords`, u16 for the 64-bit forms.
template <bool Returns>
void atomic(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const Resolver r(w, i, a);
  const auto op = static_cast<AtomicOp>(a.dwords);
  const uint32_t words = a.part == Part::u16 ? 2 : 1, bytes = 4 * words;
  const uint32_t* d = w.row(i.op[a.data].index);
  alignas(64) uint32_t out[2][64];
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    Space space;
    const uint64_t at = r.address(l, &space);
    if (at % bytes)
      return fault_address(w, i, l, at, bytes, space == Space::lds ? "misaligned LDS atomic" : "misaligned atomic");
    // Scratch interleaves the lanes' dwords, so 64 bits of it are no unit.
    if (space == Space::scratch && words == 2)
      return fault(w, i, 719, "a 64-bit atomic reached scratch memory, where hardware splits it in two");
    uint8_t* p = r.bytes_at(l, space, at, bytes, true);
    if (!p) return;
    const uint64_t data = lane_word(w, d, l, words);
    const uint64_t compare = atomic_compares(op) ? lane_word(w, d + words * w.lanes, l, words) : 0;
    const uint32_t denorms = atomic_denorms(w, op, space == Space::lds);
    uint64_t old = 0;
    if (space == Space::global) {
      old = atomic_apply(op, bytes, p, data, compare, denorms);
    } else {
      std::memcpy(&old, p, bytes);
      const uint64_t fresh = atomic_result(op, bytes, old, data, compare, denorms);
      std::memcpy(p, &fresh, bytes);
    }
    out[0][l] = static_cast<uint32_t>(old);
    out[1][l] = static_cast<uint32_t>(old >> 32);
  }
  if constexpr (Returns) {
    uint32_t* v = w.row(i.op[0].index);
    for (uint32_t k = 0; k < words; ++k, v += w.lanes)
      for (uint64_t m = w.exec(); m; m &= m - 1) {
        const int l = std::countr_zero(m);
        v[l] = out[k][l];
      }
  }
}

constexpr uint32_t kMods = kModOffset | kModCache;
constexpr Slot reg(Role role, uint32_t n) { return {Type::wide, role, static_cast<uint8_t>(n)}; }
constexpr Slot kAny = {Type::wide, kRead, 0};

constexpr Row load_row(const char* name, Class cls, uint8_t archs, Part part, uint32_t dwords) {
  Row r{name, cls, archs, &load, kMods, kLoad, 0, {}, 0, 0, nullptr};
  const bool d16 = part >= Part::u8_hi;
  r.slot[r.slots++] = reg(d16 ? kReadWrite : kWrite, dwords);
  r.slot[r.slots++] = cls == Class::flat ? reg(kRead, 2) : kAny;
  if (cls != Class::flat) r.slot[r.slots++] = kAny;
  r.data = access_data(part, dwords, 1, 2, 0);
  return r;
}
constexpr Row store_row(const char* name, Class cls, uint8_t archs, Part part, uint32_t dwords) {
  Row r{name, cls, archs, &store, kMods, kStore, 0, {}, 0, 0, nullptr};
  r.slot[r.slots++] = cls == Class::flat ? reg(kRead, 2) : kAny;
  r.slot[r.slots++] = reg(kRead, dwords);
  if (cls != Class::flat) r.slot[r.slots++] = kAny;
  r.data = access_data(part, dwords, 0, 2, 1);
  return r;
}
constexpr Row atomic_row(const char* name, Class cls, uint8_t archs, AtomicOp op, uint32_t words, bool returns) {
  // The one atomic that no flat encoding has, and that always returns.
  if (op == AtomicOp::csub && (cls == Class::flat || !returns)) archs = 0;
  Row r{name, cls, archs, returns ? &atomic<true> : &atomic<false>, kMods, kAtomic, 0, {}, 0, 0, nullptr};
  const uint32_t data = words * (atomic_compares(op) ? 2 : 1);
  if (returns) r.flags |= kReturnRow, r.slot[r.slots++] = reg(kWrite, words);
  r.slot[r.slots++] = cls == Class::flat ? reg(kRead, 2) : kAny;
  r.slot[r.slots++] = reg(kRead, data);
  if (cls != Class::flat) r.slot[r.slots++] = kAny;
  r.data = access_data(words == 2 ? Part::u16 : Part::u8, static_cast<uint32_t>(op), returns, returns + 2u, returns + 1u);
  return r;
}

#define NETRA_CLASS_ROWS(prefix, cls)                                               \
  NETRA_LOADS(NETRA_##prefix##_LOAD) NETRA_STORES(NETRA_##prefix##_STORE)
#define NETRA_GLOBAL_LOAD(a, b, part, n)                                            \
  load_row("global_load_" a, Class::global, kGfx950, part, n),                      \
  load_row("global_load_" b, Class::global, kGfx1151, part, n),
#define NETRA_GLOBAL_STORE(a, b, part, n)                                           \
  store_row("global_store_" a, Class::global, kGfx950, part, n),                    \
  store_row("global_store_" b, Class::global, kGfx1151, part, n),
#define NETRA_FLAT_LOAD(a, b, part, n)                                              \
  load_row("flat_load_" a, Class::flat, kGfx950, part, n),                          \
  load_row("flat_load_" b, Class::flat, kGfx1151, part, n),
#define NETRA_FLAT_STORE(a, b, part, n)                                             \
  store_row("flat_store_" a, Class::flat, kGfx950, part, n),                        \
  store_row("flat_store_" b, Class::flat, kGfx1151, part, n),
#define NETRA_SCRATCH_LOAD(a, b, part, n)                                           \
  load_row("scratch_load_" a, Class::scratch, kGfx950, part, n),                    \
  load_row("scratch_load_" b, Class::scratch, kGfx1151, part, n),
#define NETRA_SCRATCH_STORE(a, b, part, n)                                          \
  store_row("scratch_store_" a, Class::scratch, kGfx950, part, n),                  \
  store_row("scratch_store_" b, Class::scratch, kGfx1151, part, n),

#define NETRA_ATOMIC(arch, name, op, words)                                          \
  atomic_row("global_atomic_" name, Class::global, arch, AtomicOp::op, words, false), \
  atomic_row("global_atomic_" name, Class::global, arch, AtomicOp::op, words, true),  \
  atomic_row("flat_atomic_" name, Class::flat, arch, AtomicOp::op, words, false),     \
  atomic_row("flat_atomic_" name, Class::flat, arch, AtomicOp::op, words, true),

constexpr Row lds_row(const char* name, Class cls, Part part, uint32_t n) {
  Row r{name, cls, kGfx950, &load_lds, kMods, kLoad | kReadsM0, 0, {}, 0, 0, nullptr};
  r.slot[r.slots++] = kAny;
  r.slot[r.slots++] = kAny;
  r.data = access_data(part, n, 0, 1, 0);
  return r;
}
constexpr Row addtid_row(const char* name, bool store) {
  Row r{name, Class::global, kGfx1151, store ? &addtid<true> : &addtid<false>, kMods, store ? kStore : kLoad, 0, {}, 0, 0, nullptr};
  r.slot[r.slots++] = reg(store ? kRead : kWrite, 1);
  r.slot[r.slots++] = kAny;
  return r;
}

#define NETRA_LDS(prefix, cls)                                                       \
  lds_row(prefix "_load_lds_ubyte", cls, Part::u8, 1),                               \
  lds_row(prefix "_load_lds_sbyte", cls, Part::i8, 1),                               \
  lds_row(prefix "_load_lds_ushort", cls, Part::u16, 1),                             \
  lds_row(prefix "_load_lds_sshort", cls, Part::i16, 1),                             \
  lds_row(prefix "_load_lds_dword", cls, Part::dwords, 1),

constexpr Row kRows[] = {
    NETRA_LDS("global", Class::global)
    NETRA_LDS("scratch", Class::scratch)
    lds_row("global_load_lds_dwordx3", Class::global, Part::dwords, 3),
    lds_row("global_load_lds_dwordx4", Class::global, Part::dwords, 4),
    addtid_row("global_load_addtid_b32", false),
    addtid_row("global_store_addtid_b32", true),
    NETRA_CLASS_ROWS(GLOBAL, global)
    NETRA_CLASS_ROWS(FLAT, flat)
    NETRA_CLASS_ROWS(SCRATCH, scratch)
#include "sem/atomic.inc"
};

}  // namespace

RowSpan flat_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra
