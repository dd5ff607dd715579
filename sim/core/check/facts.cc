#include "facts.h"

#include <cstring>
#include <string>

#include "../memory_access.h"
#include "../program.h"
#include "../switches.h"
#include "../wave.h"
#include "wait_states.h"

namespace netra {
namespace {

constexpr uint8_t kLow = 3, kHigh = 12, kWhole = 15;

bool starts(std::string_view s, std::string_view with) { return s.substr(0, with.size()) == with; }
bool has(std::string_view s, std::string_view part) { return s.find(part) != s.npos; }

uint8_t bytes_of(Sel sel) {
  static constexpr uint8_t kBytes[] = {1, 2, 4, 8, kLow, kHigh, kWhole};
  return kBytes[static_cast<int>(sel)];
}
// The bytes of a register that a sub-dword access moves.
uint8_t bytes_of(Part part) {
  switch (part) {
    case Part::u8: case Part::i8: return 1;
    case Part::u8_hi: case Part::i8_hi: return 4;
    case Part::u16: case Part::i16: return kLow;
    case Part::u16_hi: return kHigh;
    default: return kWhole;
  }
}

bool is_memory(Class c) { return c == Class::ds || (c >= Class::flat && c <= Class::mtbuf); }

// Builds the facts of one instruction.
class Reader {
 public:
  Reader(const Insn& insn, Arch arch, uint32_t lanes, Facts* out)
      : i_(insn), arch_(arch), mask_(lanes / 32), name_(mnemonic_of(insn)), f_(*out) {}

  void read() {
    f_.insn = &i_;
    classify();
    if (i_.x) {
      half(*i_.x, &i_.op[0]);
      half(*i_.y, &i_.y->op[0]);
    } else if (i_.row) {
      bound();
    } else {
      guessed();
    }
    implicit();
    derive();
    counters();
    mark_hazard_rows(&f_, arch_, name_);
  }

 private:
  void add(bool write, const Operand& o, uint8_t slot, uint8_t bytes = kWhole, int first = 0, int count = -1) {
    File file = File::vgpr;
    if (o.kind == Kind::sgpr) file = File::scalar;
    else if (o.kind == Kind::special) return special(o, slot);
    else if (o.kind != Kind::vgpr && o.kind != Kind::agpr) return;
    if (file == File::scalar && o.index == kNull) return;
    const int n = count < 0 ? std::max<int>(o.dwords, 1) : count;
    put(write, {file, static_cast<uint8_t>(n), static_cast<uint16_t>(o.index + first), bytes, slot});
  }
  void put(bool write, const Ref& r) {
    if (!r.count || !r.bytes) return;
    if (write && f_.writes < f_.written.size()) f_.written[f_.writes++] = r;
    if (!write && f_.reads < f_.read.size()) f_.read[f_.reads++] = r;
  }
  void scalar(bool write, uint16_t index, uint32_t count) {
    put(write, {File::scalar, static_cast<uint8_t>(count), index, kWhole, kImplicit});
  }
  void special(const Operand& o, uint8_t slot) {
    const auto which = static_cast<Special>(o.index);
    if (which == Special::vccz) put(false, {File::scalar, static_cast<uint8_t>(mask_), kVcc, kWhole, slot});
    if (which == Special::execz) put(false, {File::scalar, static_cast<uint8_t>(mask_), kExec, kWhole, slot});
    if (which == Special::scc) put(false, {File::scalar, 1, kScc, kWhole, slot});
  }

  // One operation of a VOPD pair; its own first operand may be the spare row.
  void half(const Insn& h, const Operand* d) {
    add(true, *d, 0);
    if (h.row->slot[0].role & kRead) put(false, {File::vgpr, 1, h.acc_row, kWhole, kAccumulator});
    for (int k = 1; k < h.operands; ++k) add(false, h.op[k], static_cast<uint8_t>(k));
    if (h.row->flags & kImplicitVccRead) scalar(false, kVcc, mask_);
  }

  // An instruction that has no semantics here: the first operand is written, the others are read.
  void guessed() {
    const bool accumulates = starts(name_, "v_smfmac");
    for (int k = 0; k < i_.operands; ++k) {
      const auto slot = static_cast<uint8_t>(k);
      if (k == 0) add(true, i_.op[0], 0);
      if (k > 0) add(false, i_.op[k], slot);
      else if (accumulates) add(false, i_.op[0], kAccumulator);
    }
  }

  int first_source() const {
    int n = 0;
    while (n < i_.row->slots && i_.row->slot[n].role == kWrite) ++n;
    return i_.row->slots && i_.row->slot[0].role == kReadWrite ? 1 : n;
  }

  uint8_t source_bytes(int k) const {
    const Slot& slot = i_.row->slot[k];
    const Operand& o = i_.op[k];
    const uint32_t flags = i_.row->flags;
    const int which = k - first_source();
    if (i_.cls == Class::mfma || i_.cls == Class::wmma || is_memory(i_.cls)) return kWhole;
    const bool lo = i_.op_sel >> which & 1, hi = i_.op_sel_hi >> which & 1;
    if (flags & kMixed) return !hi ? kWhole : lo ? kHigh : kLow;
    if (flags & kPacked && i_.cls == Class::vop3p && which < 3 && (is_16bit(slot.type) || has(name_, "dot2")))
      return static_cast<uint8_t>((lo ? kHigh : kLow) | (hi ? kHigh : kLow));
    if (i_.sdwa.on && which < 2) return bytes_of(which ? i_.sdwa.src1 : i_.sdwa.src0);
    if (!is_16bit(slot.type) || flags & kPacked) return kWhole;
    return (o.half ? o.half == 2 : lo) ? kHigh : kLow;
  }

  uint8_t result_bytes(int k) const {
    const Slot& slot = i_.row->slot[k];
    if (has(name_, "fma_mixlo")) return kLow;
    if (has(name_, "fma_mixhi")) return kHigh;
    if (i_.cls == Class::wmma && slot.role == kReadWrite) return i_.op_sel >> 2 & 1 ? kHigh : kLow;
    if (i_.sdwa.on && i_.sdwa.dst != Sel::dword)
      return i_.sdwa.unused == Unused::preserve ? bytes_of(i_.sdwa.dst) : kWhole;
    if (!is_16bit(slot.type) || is_memory(i_.cls)) return kWhole;
    if (i_.op[k].half == 2 || i_.op_sel & 8) return kHigh;
    return arch_ == kGfx1151 || i_.row->flags & kMergeHalf ? kLow : kWhole;
  }

  void bound() {
    const Row& row = *i_.row;
    if (is_memory(i_.cls)) return memory();
    for (int k = 0; k < i_.operands; ++k) {
      const Slot& slot = row.slot[k];
      const auto number = static_cast<uint8_t>(k);
      if (slot.role & kWrite && !(row.cls == Class::smem && row.flags & kAtomic && !i_.sc0))
        add(true, i_.op[k], number, result_bytes(k), 0, row.cls == Class::smem && row.flags & kAtomic ? atomic_words() : -1);
      if (!(slot.role & kRead)) continue;
      if (slot.role == kReadWrite) {
        // What keeps a part of its destination does not read it; lanes that are not written stay.
        const bool keeps = has(name_, "fma_mix") || row.cls == Class::wmma || has(name_, "writelane") ||
                           starts(name_, "v_permlane16_b32") || starts(name_, "v_permlanex16");
        if (!keeps) add(false, i_.op[k], k == 0 && row.cls != Class::smem && !has(name_, "swap") ? kAccumulator : number);
        continue;
      }
      if (slot.type == Type::pk32) {
        pair(k);
        continue;
      }
      add(false, i_.op[k], number, source_bytes(k));
    }
  }

  // A source pair of the packed f32 operations: op_sel and op_sel_hi pick the dwords.
  void pair(int k) {
    const int which = k - 1;
    const bool move = i_.row->flags & kPackedMove;
    const bool lo = i_.op_sel >> which & 1, hi = move ? lo : i_.op_sel_hi >> which & 1;
    for (int dword = 0; dword < 2; ++dword)
      if (lo == static_cast<bool>(dword) || hi == static_cast<bool>(dword))
        add(false, i_.op[k], static_cast<uint8_t>(k), kWhole, dword, 1);
  }

  int atomic_words() const { return Access(i_.row->data).part == Part::u16 ? 2 : 1; }

  void memory() {
    const Row& row = *i_.row;
    bool address_seen = false;
    const bool no_address = has(name_, "swizzle") || has(name_, "addtid") || has(name_, "append") || has(name_, "consume");
    for (int k = 0; k < i_.operands; ++k) {
      const Slot& slot = row.slot[k];
      const auto number = static_cast<uint8_t>(k);
      const bool buffer_atomic = row.cls == Class::mubuf && row.flags & kAtomic;
      if (slot.role & kWrite && !(buffer_atomic && !i_.sc0)) {
        uint8_t bytes = kWhole;
        if (slot.role == kReadWrite && row.flags & kLoad) bytes = d16_bytes();
        add(true, i_.op[k], number, bytes, 0, buffer_atomic ? atomic_words() : -1);
      }
      if (slot.role == kWrite || (slot.role == kReadWrite && row.flags & kLoad)) continue;
      const bool data = slot.role == kReadWrite || (row.cls == Class::ds ? no_address || address_seen : number == data_slot());
      if (data) {
        add(false, i_.op[k], number, row.flags & kStore && !has(name_, "2") ? store_bytes() : kWhole);
      } else {
        f_.address_slots = static_cast<uint8_t>(f_.address_slots | 1u << k);
        add(false, i_.op[k], number);
        address_seen = true;
      }
    }
  }
  uint8_t store_bytes() const {
    const Access a(i_.row->data);
    return a.part == Part::dwords ? kWhole : bytes_of(a.part);
  }
  // Vector memory of gfx950 clears the half that a 16-bit load does not name (switch d16_vmem).
  uint8_t d16_bytes() const {
    if (i_.cls != Class::ds && arch_ == kGfx950 && !switches().d16_vmem_preserve) return kWhole;
    const Part p = Access(i_.row->data).part;
    return p == Part::u8_hi || p == Part::i8_hi || p == Part::u16_hi ? kHigh : kLow;
  }
  // The operand that is moved rather than used as an address; 255: none.
  uint8_t data_slot() const {
    if (f_.is(kIsLdsDma)) return 255;
    if (has(name_, "addtid")) return 0;
    return static_cast<uint8_t>(Access(i_.row->data).data);
  }

  void classify() {
    const uint32_t flags = i_.row ? i_.row->flags : 0;
    uint32_t k = 0;
    Class cls = i_.cls;
    if (starts(name_, "v_mfma") || starts(name_, "v_smfmac")) cls = Class::mfma;
    else if (!i_.row && starts(name_, "v_")) cls = Class::vop3;
    switch (cls) {
      case Class::sop1: case Class::sop2: case Class::sopc: case Class::sopk: case Class::sopp: k = kIsSalu; break;
      case Class::smem: k = kIsSmem; break;
      case Class::ds: k = kIsDs; break;
      case Class::flat: k = kIsVmem | kIsFlat; break;
      case Class::global: case Class::scratch: case Class::mubuf: case Class::mtbuf: k = kIsVmem; break;
      case Class::wmma: k = kIsWmma; break;
      case Class::mfma:
        k = starts(name_, "v_smfmac") ? kIsXdl | kIsSmfmac
            : starts(name_, "v_mfma_f64") ? kIsDgemm
            : name_.size() > 4 && name_.substr(name_.size() - 4) == "_f32" ? kIsSgemm : kIsXdl;
        f_.passes = passes(k);
        break;
      case Class::unknown: break;
      default: k = kIsValu;
    }
    if (flags & kTrans) k |= kIsTrans;
    if (starts(name_, "v_dot")) k |= kIsDot;
    if (name_ == "v_readlane_b32" || name_ == "v_readfirstlane_b32") k |= kIsLaneRead;
    if (name_ == "v_writelane_b32") k |= kIsLaneWrite;
    if (i_.dpp.ctrl != DppCtrl::none) k |= kIsDpp;
    if (starts(name_, "v_permlane16_swap") || starts(name_, "v_permlane32_swap")) k |= kIsPermSwap;
    else if (starts(name_, "v_permlane")) k |= kIsPermlane;
    if (name_ == "v_nop") k |= kIsNop;
    if (flags & kLoad) k |= kIsLoad;
    if (flags & kStore) k |= kIsStore;
    if (flags & kAtomic) k |= kIsAtomic;
    if (flags & kLoad && flags & kReadsM0 && k & kIsVmem) k |= kIsLdsDma;
    if (k & (kIsMfma | kIsWmma | kIsLaneRead | kIsLaneWrite)) k |= kIgnoresLanes;
    if (name_ == "s_barrier") k |= kIsBarrier;
    if (flags & kBranch) k |= kIsBranch;
    const bool byte_select = (has(name_, "_fp8_") || has(name_, "_bf8_")) && starts(name_, "v_cvt") && i_.op_sel & 12;
    if (i_.sdwa.on && i_.sdwa.dst != Sel::dword) k |= kPartialWrite;
    if (k & kIsValu && (i_.op_sel & 8 || byte_select)) k |= kPartialWrite;
    f_.kinds = k;
    if (name_ == "s_nop") f_.wait_states = static_cast<uint8_t>((i_.imm & 15) + 1);
  }

  // Passes of 4 clocks, by shape; the 8-bit formats of f8f6f4 take twice the time.
  uint8_t passes(uint32_t kind) const {
    const bool flexible = has(name_, "f8f6f4"), slow = flexible && (i_.cbsz <= 1 || i_.blgp <= 1);
    const bool blocks = has(name_, "_2b") || has(name_, "_4b");
    if (has(name_, "32x32")) return kind & kIsSgemm || blocks || slow ? 16 : 8;
    if (has(name_, "16x16")) return kind & kIsDgemm ? 16 : kind & kIsSgemm || blocks || slow ? 8 : 4;
    return kind & kIsDgemm ? 4 : 2;
  }

  void implicit() {
    if (!i_.row || i_.x) return;
    const uint32_t flags = i_.row->flags;
    if (flags & kImplicitVccRead) scalar(false, kVcc, mask_);
    if (flags & kImplicitVccWrite) scalar(true, kVcc, mask_);
    if (flags & kReadsScc) scalar(false, kScc, 1);
    if (flags & kWritesScc) scalar(true, kScc, 1);
    // A message takes its argument from M0; the one that gives VGPRs back has none.
    const bool message = name_ == "s_sendmsg" && !std::strstr(i_.text, "DEALLOC_VGPRS");
    if (flags & kReadsM0 || message) scalar(false, kM0, 1);
    if (starts(name_, "s_set_gpr_idx_")) scalar(true, kM0, 1);
    if (flags & kWritesExec && !(flags & kExecOperand)) scalar(true, kExec, mask_);
  }

  void derive() {
    if (f_.is(kIsValu))
      for (int k = 0; k < f_.writes; ++k)
        if (f_.written[k].file == File::scalar && f_.written[k].index >= kExec && f_.written[k].index < kExec + 2)
          f_.kinds |= kIsCmpx;
    for (int k = 0; k < f_.writes; ++k)
      if (f_.is(kIsAtomic) && f_.written[k].file == File::vgpr) f_.kinds |= kReturns;
  }

  void counters() {
    uint32_t c = 0;
    const bool gfx9 = arch_ == kGfx950;
    if (f_.is(kIsVmem)) {
      if (f_.is(kIsLoad) || f_.is(kReturns)) c = 1u << kVm;
      else if (f_.is(kIsStore | kIsAtomic)) c = 1u << (gfx9 ? kVm : kVs);
      else if (name_ == "buffer_wbl2") c = 1u << kVm;
      if (f_.is(kIsFlat) && c) c |= 1u << kLgkm;
    }
    if (f_.is(kIsDs) && name_ != "ds_nop") c = 1u << kLgkm;
    if (f_.is(kIsSmem) && (f_.is(kIsLoad | kIsStore | kIsAtomic) || has(name_, "time"))) c = 1u << kLgkm;
    if (starts(name_, "s_sendmsg") && name_ != "s_sendmsghalt") c = 1u << kLgkm;
    f_.counters = static_cast<uint8_t>(c);
    waits();
  }

  void wait(Counter c, uint32_t n, uint32_t none) {
    if (n == none) return;
    f_.waits = static_cast<uint8_t>(f_.waits | 1u << c);
    f_.wait[c] = static_cast<uint8_t>(n);
  }
  // From the encoding: the low half of the word is the immediate.
  void waits() {
    if (!starts(name_, "s_wait")) return;
    uint16_t imm;
    std::memcpy(&imm, reinterpret_cast<const void*>(i_.pc), 2);
    if (name_ == "s_waitcnt") {
      if (arch_ == kGfx950) {
        wait(kVm, (imm & 15u) | (imm >> 14 & 3u) << 4, 63);
        wait(kExp, imm >> 4 & 7u, 7);
        wait(kLgkm, imm >> 8 & 15u, 15);
      } else {
        wait(kVm, imm >> 10 & 63u, 63);
        wait(kLgkm, imm >> 4 & 63u, 63);
        wait(kExp, imm & 7u, 7);
      }
    } else if (name_ == "s_waitcnt_vscnt") {
      wait(kVs, imm & 63u, 63);
    } else if (name_ == "s_waitcnt_vmcnt") {
      wait(kVm, imm & 63u, 63);
    } else if (name_ == "s_waitcnt_lgkmcnt") {
      wait(kLgkm, imm & 63u, 63);
    } else if (name_ == "s_wait_idle") {
      for (int c = 0; c < kCounters; ++c) wait(static_cast<Counter>(c), 0, 63);
    }
  }

  const Insn& i_;
  Arch arch_;
  uint32_t mask_;
  std::string_view name_;
  Facts& f_;
};

}  // namespace

std::string_view mnemonic_of(const Insn& i) {
  if (i.row && i.row->name) return i.row->name;
  std::string_view name = i.text;
  name = name.substr(0, name.find(' '));
  for (const std::string_view suffix : {"_dpp", "_sdwa", "_e64", "_e32"})
    if (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix)
      name.remove_suffix(suffix.size());
  return name;
}

FactsTable::FactsTable(const Program& program, Arch arch, uint32_t lanes)
    : first_(program.code()), arch_(arch), lanes_(lanes), facts_(program.size()) {}

const Facts& FactsTable::operator[](const Insn& i) {
  Facts& f = facts_[static_cast<size_t>(&i - first_)];
  if (!f.insn) Reader(i, arch_, lanes_, &f).read();
  return f;
}

const Facts& resolve(const Wave& w, const Facts& f, Facts* moved) {
  const bool indexing = w.mode & kModeGprIdx && f.is(kIsValu);
  const bool relative = f.insn->row && f.insn->row->flags & kReadsM0 && f.is(kIsValu | kIsSalu) &&
                        mnemonic_of(*f.insn).find("rel") != std::string_view::npos;
  if (!indexing && !relative) return f;
  *moved = f;
  const std::string_view name = mnemonic_of(*f.insn);
  const auto shift = [&](Ref& r, bool destination) {
    if (r.slot == kImplicit || (r.file == File::scalar) != f.is(kIsSalu)) return;
    const uint32_t m0 = w.s[kM0];
    uint32_t by = 0;
    if (relative) {
      const bool two = name.find("_2_") != name.npos || name.find("swaprel") != name.npos;
      const bool both = two || name.find("relsd") != name.npos;
      const bool d = both || name.find("reld") != name.npos, s = both || name.find("rels") != name.npos;
      const bool to_d = destination || r.slot == 0 || r.slot == kAccumulator;
      if (to_d ? d : s) by = !two ? m0 : to_d ? m0 >> 16 & 0x3ff : m0 & 0x3ff;
    } else {
      int writes = 0;
      for (int k = 0; k < f.insn->row->slots; ++k) writes += f.insn->row->slot[k].role & kWrite ? 1 : 0;
      const int role = destination || r.slot == kAccumulator ? 3 : r.slot - writes;
      if (role >= 0 && role < 4 && m0 >> (12 + role) & 1) by = m0 & 0xff;
    }
    const uint64_t at = static_cast<uint64_t>(r.index) + by, limit = r.file == File::vgpr ? w.vgprs : kVcc;
    if (at + r.count <= limit) r.index = static_cast<uint16_t>(at);   // past it, execution faults
  };
  for (int k = 0; k < moved->reads; ++k) shift(moved->read[k], false);
  for (int k = 0; k < moved->writes; ++k) shift(moved->written[k], true);
  return *moved;
}

}  // namespace netra
