// Binding: text to operands, operands to a semantics row, and refusals for everything else.
#include "program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "exec/table.h"
#include "rows.h"
#include "wave.h"

namespace netra {
namespace {

// Which compilation of the vector rows runs: NETRA_SIM_HOST, or the best that the machine has.
struct Host {
  bool wide = false;
  std::string error;
  Host() {
#if defined(__x86_64__) && !defined(NETRA_ONE_HOST)
    wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#endif
    const char* text = std::getenv("NETRA_SIM_HOST");
    const std::string name = text ? text : "";
    if (name == "v3" && !wide) error = "NETRA_SIM_HOST: v3 needs AVX2, FMA and BMI2, which are not here";
    else if (!name.empty() && name != "v3" && name != "base")
      error = "NETRA_SIM_HOST: '" + name + "' is neither base nor v3";
    if (name == "base") wide = false;
  }
};
const Host& host() {
  static const Host h;
  return h;
}

struct Tables {
  std::vector<const Row*> all;
  // By mnemonic; a name may have a row per target and another for `clamp`.
  std::unordered_multimap<std::string, const Row*> by_name;

  void add(RowSpan rows) {
    for (size_t k = 0; k < rows.count; ++k) {
      all.push_back(rows.first + k);
      by_name.emplace(rows.first[k].name, rows.first + k);
    }
  }
  Tables() {
#if defined(__x86_64__) && !defined(NETRA_ONE_HOST)
#define NETRA_ADD(cls) add(host().wide ? host_v3::cls##_rows() : host_base::cls##_rows());
#else
#define NETRA_ADD(cls) add(host_base::cls##_rows());
#endif
    NETRA_VECTOR_TABLES(NETRA_ADD)
#undef NETRA_ADD
#define NETRA_ADD(cls) add(cls##_rows());
    NETRA_SCALAR_TABLES(NETRA_ADD)
#undef NETRA_ADD
  }
};
const Tables& tables() {
  static const Tables t;
  return t;
}

// Executes an instruction that is not understood: the wave stops and says why.
void refuse(Wave& w, const Insn& i) { fault(w, i, 719, i.refusal); }

bool strip_suffix(std::string* name, const char* suffix) {
  const size_t n = std::strlen(suffix);
  if (name->size() <= n || name->compare(name->size() - n, n, suffix) != 0) return false;
  name->resize(name->size() - n);
  return true;
}

// f64 -> the bits of a narrower inline constant. Inline constants are few and exact, except
// 1/(2*pi), which has its own pattern in each width.
uint32_t inline_f16(double d) {
  if (d == 0.15915494) return 0x3118;
  if (d == 0) return 0;
  uint64_t b;
  std::memcpy(&b, &d, 8);
  return static_cast<uint32_t>((b >> 48 & 0x8000) | (((b >> 52 & 0x7ff) - 1023 + 15) << 10) |
                               (b >> 42 & 0x3ff));
}
uint32_t inline_f32(double d) {
  if (d == 0.15915494) return 0x3e22f983;
  const float f = static_cast<float>(d);
  uint32_t b;
  std::memcpy(&b, &f, 4);
  return b;
}
uint64_t inline_f64(double d) {
  if (d == 0.15915494) return 0x3fc45f306dc9c882ull;
  uint64_t b;
  std::memcpy(&b, &d, 8);
  return b;
}

void expand_constant(Operand* o, Type type, bool packed, Arch arch) {
  uint64_t bits = o->value;
  if (o->is_fp_text) {
    double d;
    std::memcpy(&d, &o->value, 8);
    switch (type) {
      case Type::f16: bits = inline_f16(d); break;
      case Type::b16: case Type::u16: case Type::i16:
        bits = packed ? inline_f32(d) : inline_f16(d);   // packed integers see the f32 pattern
        break;
      case Type::bf16: bits = d == 0.15915494 ? 0x3e22 : inline_f32(d) >> 16; break;
      case Type::f64: case Type::b64: case Type::u64: case Type::i64: bits = inline_f64(d); break;
      default: bits = inline_f32(d);
    }
  } else if (o->literal) {
    // A 32-bit literal in a 64-bit slot: high dword of a double; gfx950 extends the sign for i64.
    if (type == Type::f64) bits = (o->value & 0xffffffff) << 32;
    else if (type == Type::i64 && arch == kGfx950) bits = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(o->value)));
    else bits = o->value & 0xffffffff;
  }
  o->bits_lo = static_cast<uint32_t>(bits);
  o->bits_hi = static_cast<uint32_t>(bits >> 32);
}

}  // namespace

const std::string& host_error() { return host().error; }

const char* class_name(Class c) {
  static constexpr const char* kNames[] = {
      "sop1", "sop2", "sopc", "sopk",    "sopp", "smem", "vop1", "vop2",   "vop3",    "vop3p", "vopc",
      "vopd", "vinterp", "mfma", "wmma", "ds",   "flat", "global", "scratch", "mubuf", "mtbuf",
      "unknown"};
  return kNames[static_cast<int>(c)];
}

const std::vector<const Row*>& all_rows() { return tables().all; }

const Row* find_row(const std::string& mnemonic, Arch arch, uint32_t variant) {
  const Row* plain = nullptr;
  const auto [first, last] = tables().by_name.equal_range(mnemonic);
  for (auto it = first; it != last; ++it) {
    if (!(it->second->archs & arch)) continue;
    if (const uint32_t own = it->second->flags & (kClampRow | kReturnRow | kLdsRow | kWave64Row)) {
      if (own & variant) return it->second;
    } else {
      plain = it->second;
    }
  }
  return plain;
}

class Binder {
 public:
  Binder(Program* program, const CodeObject& object, const Kernel& kernel)
      : p_(*program), object_(object), kernel_(kernel),
        arch_(object.arch == "gfx950" ? kGfx950 : kGfx1151),
        mask_dwords_(kernel.descriptor.wave32 ? 1 : 2) {}

  void bind_all(const Disassembly& text) {
    p_.sources_ = text.sources;
    if (!text.lines.empty()) {
      p_.text_begin_ = text.lines.front().address + object_.load_base;
      const TextLine& last = text.lines.back();
      p_.index_.assign((last.address + object_.load_base - p_.text_begin_) / 4 + 1, -1);
    }
    uint64_t next = p_.text_begin_;
    for (const TextLine& t : text.lines) {
      const uint64_t pc = t.address + object_.load_base;
      if (pc != next) add_end(next);
      p_.index_[(pc - p_.text_begin_) / 4] = static_cast<int32_t>(p_.code_.size());
      Insn& i = p_.code_.emplace_back();
      i.pc = pc;
      i.bytes = static_cast<uint8_t>(t.bytes);
      i.line = t.source;
      p_.texts_.push_back(t.text);
      i.text = p_.texts_.back().c_str();
      next = pc + t.bytes;
    }
    add_end(next);
    for (Insn& i : p_.code_) {
      if (i.refusal) continue;
      const std::string text_line = i.text;
      const size_t pair = text_line.find(" :: ");
      if (pair != std::string::npos) bind_pair(&i, text_line, pair);
      else bind_text(&i, text_line);
      i.tally = static_cast<uint8_t>(tally_of(i.cls, promised(i)));
    }
    // Firmware that preloads kernel arguments starts 256 bytes in, behind the prologue that loads
    // them for firmware that does not (LLVM AMDGPUUsage, "Preloaded Kernel Arguments").
    p_.entry_ = p_.at(kernel_.entry + ((kernel_.descriptor.preload & 127) != 0 ? 256 : 0));
  }

 private:
  // Of a VOPD pair: the weaker of both halves.
  static Promise promised(const Insn& i) {
    if (i.x) return std::max(promised(*i.x), promised(*i.y));
    return i.row ? promise_of(i.row->flags) : Promise::exact;
  }

  // What a wave meets that runs past the last instruction of a stretch of code.
  void add_end(uint64_t pc) {
    Insn& i = p_.code_.emplace_back();
    i.pc = pc;
    i.text = "";
    i.refusal = "ran past the end of the code";
    i.execute = &refuse;
  }

  void refuse_with(Insn* i, const std::string& why) {
    p_.texts_.push_back(why + ": " + i->text);
    i->refusal = p_.texts_.back().c_str();
    i->execute = &refuse;
  }

  void bind_text(Insn* i, const std::string& text) {
    std::string mnemonic, refusal;
    if (const char* why = reason_left_out(text.substr(0, text.find(' ')))) return refuse_with(i, why);
    if (!parse_instruction(text, i, &mnemonic, &refusal)) return refuse_with(i, refusal);
    std::string name = mnemonic;
    const bool dpp = strip_suffix(&name, "_dpp");
    const bool sdwa = strip_suffix(&name, "_sdwa");
    strip_suffix(&name, "_e64");
    strip_suffix(&name, "_e32");
    const Row* row = find_row(name, arch_, (i->clamp ? kClampRow : 0u) | (i->sc0 ? kReturnRow : 0u) |
                                               (i->lds ? kLdsRow : 0u) |
                                               (mask_dwords_ == 2 ? kWave64Row : 0u));
    if (!row) return refuse_with(i, "instruction '" + name + "' is not implemented for " + object_.arch);
    bind_row(i, *row);
    // The e32 compares of gfx1151 print DPP without a suffix.
    if (!i->refusal && ((dpp && i->dpp.ctrl == DppCtrl::none) || sdwa != i->sdwa.on))
      refuse_with(i, "DPP or SDWA suffix without its controls");
  }

  // VOPD: X's result goes to the spare row past the allocation, and is copied after Y has read.
  void bind_pair(Insn* i, const std::string& text, size_t at) {
    const std::string halves[2] = {text.substr(0, at), text.substr(at + 4)};
    Insn* bound[2];
    for (int k = 0; k < 2; ++k) {
      p_.halves_.emplace_back();
      Insn* h = bound[k] = &p_.halves_.back();
      h->pc = i->pc, h->bytes = i->bytes, h->line = i->line, h->text = i->text;
      std::string half = halves[k];
      if (half.rfind("v_dual_", 0) != 0) return refuse_with(i, "not a VOPD pair");
      half.replace(0, 7, "v_");
      std::string mnemonic, refusal;
      if (!parse_instruction(half, h, &mnemonic, &refusal)) return refuse_with(i, refusal);
      // In VOPD, the names of the plain encodings; cndmask reads VCC without printing it.
      if (mnemonic == "v_cndmask_b32") {
        Operand vcc;
        vcc.kind = Kind::sgpr, vcc.index = kVcc, vcc.dwords = 1;
        h->op[h->operands++] = vcc;
      }
      const Row* row = find_row(mnemonic, arch_, 0);
      if (!row) return refuse_with(i, "instruction '" + mnemonic + "' is not implemented in VOPD");
      bind_row(h, *row);
      if (h->refusal) return refuse_with(i, h->refusal);
    }
    i->x = bound[0];
    i->y = bound[1];
    i->op[0] = bound[0]->op[0];
    i->operands = 1;
    bound[0]->op[0].index = static_cast<uint16_t>(kernel_.descriptor.vgprs_allocated);
    i->row = find_row("v_dual", arch_, 0);
    i->cls = Class::vopd;
    i->execute = i->row->execute;
  }

  void bind_row(Insn* i, const Row& row) {
    i->row = &row;
    i->cls = row.cls;
    i->execute = row.execute;
    if (const uint32_t odd = i->mods & ~row.mods; odd)
      return refuse_with(i, std::string("modifier ") + modifier_name(odd) + " has no meaning for " + row.name);
    if (row.cls == Class::sopp) {
      if (!bind_sopp(i)) return refuse_with(i, "operand is not understood");
      return;
    }
    if (row.flags & kExecOperand && i->operands < kMaxSlots) {
      std::copy_backward(i->op, i->op + i->operands, i->op + i->operands + 1);
      i->op[0] = Operand{};
      i->op[0].kind = Kind::sgpr;
      i->op[0].index = kExec;
      i->op[0].dwords = static_cast<uint8_t>(mask_dwords_);
      ++i->operands;
    }
    if (row.flags & kMixed && !(i->mods & kModOpSelHi)) i->op_sel_hi = 0;
    if (i->operands > row.slots || i->operands + row.optional < row.slots)
      return refuse_with(i, "expected " + std::to_string(row.slots) + " operands, found " +
                                std::to_string(i->operands));
    for (int k = 0; k < i->operands; ++k)
      if (!bind_operand(i, row, k)) return;
    if (!bind_address(i, row)) return;
    // op_sel prints one bit a source, and then one for the destination when that has halves: in
    // the encoding, and here, the destination's is always bit 3.
    if (i->op_sel_count) {
      int sources = 0;
      for (int k = 0; k < i->operands; ++k) sources += !(row.slot[k].role & kWrite) && row.slot[k].type != Type::mask;
      if (i->op_sel_count == sources + 1 && sources < 3 && (i->op_sel >> sources & 1))
        i->op_sel = static_cast<uint8_t>((i->op_sel & ~(1 << sources)) | 8);
    }
    i->acc_row = i->op[0].index;
    if (row.flags & kPacked && row.cls == Class::vop2 && i->mods & (kModNeg | kModAbs) && !bind_signs(i)) return;
    constexpr uint32_t kChanges = kModNeg | kModAbs | kModSext | kModHalf | kModClamp | kModOmod |
                                  kModOpSel | kModDpp | kModDpp8 | kModSdwa;
    // A clamp row clamps by itself; the low half of a register is what a 16-bit slot reads anyway.
    uint32_t changes = i->mods & kChanges & ~(row.flags & kClampRow ? kModClamp : 0u);
    bool high = i->op_sel != 0;
    for (int k = 0; k < i->operands; ++k) high |= i->op[k].half == 2;
    if (!high) changes &= ~(kModHalf | kModOpSel);
    i->plain = changes == 0;
    if (row.flags & kBranch && !bind_branch(i)) refuse_with(i, "branch target is not an instruction");
  }

  // VOP3 forms of packed VOP2: the bits that print as neg and abs are neg_lo and neg_hi.
  bool bind_signs(Insn* i) {
    if (i->dpp.ctrl != DppCtrl::none) {
      refuse_with(i, "what neg and abs do to packed halves under DPP is not known");
      return false;
    }
    for (int k = 1; k < i->operands; ++k) {
      i->neg_lo = static_cast<uint8_t>(i->neg_lo | i->op[k].neg << (k - 1));
      i->neg_hi = static_cast<uint8_t>(i->neg_hi | i->op[k].abs << (k - 1));
      i->op[k].neg = i->op[k].abs = false;
    }
    return true;
  }

  static const char* modifier_name(uint32_t bits) {
    static constexpr struct { uint32_t bit; const char* name; } kNames[] = {
        {kModNeg, "neg"}, {kModAbs, "abs"}, {kModSext, "sext"}, {kModHalf, ".l/.h"},
        {kModClamp, "clamp"}, {kModOmod, "omod"}, {kModOpSel, "op_sel"}, {kModOpSelHi, "op_sel_hi"},
        {kModNegLo, "neg_lo"}, {kModNegHi, "neg_hi"}, {kModDpp, "DPP"}, {kModDpp8, "DPP8"},
        {kModSdwa, "SDWA"}, {kModOffset, "offset"}, {kModOffset01, "offset0/offset1"},
        {kModCache, "cache policy"}, {kModOffen, "offen"}, {kModIdxen, "idxen"}, {kModLds, "lds"},
        {kModGds, "gds"}, {kModBroadcast, "cbsz/abid/blgp"}, {kModBitop, "bitop3"},
        {kModFormat, "format"}, {kModSwizzle, "swizzle"}, {kModTfe, "tfe"},
        {kModBoundCtrl, "bound_ctrl/fi"}};
    for (const auto& n : kNames)
      if (bits & n.bit) return n.name;
    return "?";
  }

  bool bind_operand(Insn* i, const Row& row, int k) {
    Operand& o = i->op[k];
    const Slot& slot = row.slot[k];
    const auto bad = [&](const std::string& why) {
      refuse_with(i, "operand " + std::to_string(k + 1) + " " + why);
      return false;
    };
    if (slot.type == Type::text) return true;
    if (o.half && !is_16bit(slot.type)) return bad("has 32 bits and takes no .l or .h");
    if (o.kind == Kind::text) return bad("is not understood");
    if (o.kind == Kind::off) return slot.type == Type::wide && slot.dwords == 0 ? true : bad("may not be off");
    if ((o.neg || o.abs) && !is_float(slot.type) && slot.type != Type::b16 &&
        slot.type != Type::b32 && slot.type != Type::b64)
      return bad("is an integer and takes no neg or abs");
    const uint32_t want = slot.type == Type::mask   ? mask_dwords_
                          : slot.dwords || slot.type == Type::wide ? slot.dwords
                                                                   : dwords_of(slot.type);
    if (o.kind == Kind::constant) {
      if (slot.role & kWrite) return bad("is written and cannot be a constant");
      const bool addend = (row.cls == Class::mfma || row.cls == Class::wmma) && k == 3;
      if (!addend && needs_vgpr(row, k)) return bad("has to be a vector register");
      const bool half = row.flags & kMixed && i->op_sel_hi >> (k - 1) & 1;
      expand_constant(&o, half ? Type::f16 : slot.type, row.flags & kPacked, arch_);
      p_.constants_.emplace_back();
      std::array<uint32_t, 128>& c = p_.constants_.back();
      std::fill_n(c.begin(), 64, o.bits_lo);
      std::fill_n(c.begin() + 64, 64, o.bits_hi);
      o.row = c.data();
      return true;
    }
    // Trap temporaries read 0 and drop writes outside the trap handler, as NULL does.
    if (o.kind == Kind::sgpr && o.index >= kTtmp && o.index < kTtmp + 16) o.index = kNull;
    if (o.kind == Kind::sgpr && o.index == kNull) return true;
    if (o.kind == Kind::special) return slot.role & kWrite ? bad("cannot be written") : true;
    if (o.kind == Kind::vgpr || o.kind == Kind::agpr) {
      if (row.cls <= Class::smem) return bad("is a vector register, and this instruction is scalar");
    } else if (needs_vgpr(row, k)) {
      return bad("has to be a vector register");
    }
    if (want && o.dwords != want)
      return bad("names " + std::to_string(o.dwords) + " registers, expected " + std::to_string(want));
    return check_allocation(i, &o);
  }

  // Operands that the drivers take from the vector file without looking.
  static bool needs_vgpr(const Row& row, int k) {
    const Slot& slot = row.slot[k];
    switch (row.cls) {
      case Class::mfma: case Class::wmma: return k < 4;
      case Class::ds: return true;
      case Class::flat: case Class::global: case Class::scratch: return slot.dwords != 0;
      case Class::mubuf: return k == static_cast<int>(row.data >> 20 & 7) && slot.dwords != 0;
      case Class::vop1: case Class::vop2: case Class::vop3: case Class::vop3p: {
        const std::string_view name = row.name;
        return slot.role & kWrite && slot.type != Type::mask && name.find("_readlane_") == name.npos &&
               name.find("_readfirstlane_") == name.npos && name.rfind("v_cmp", 0) != 0;
      }
      default: return false;
    }
  }

  // The address registers of a memory instruction: how many depends on the other operands.
  bool bind_address(Insn* i, const Row& row) {
    int want = -1, at = -1;
    const uint32_t vaddr = row.data >> 24 & 7, base = row.data >> 28 & 7;   // kAddress, kBase
    if (row.cls == Class::global) {
      at = static_cast<int>(vaddr);
      want = i->op[base].kind == Kind::off ? 2 : 1;
    } else if ((row.cls == Class::mubuf || row.cls == Class::mtbuf) && i->operands > static_cast<int>(vaddr) && row.slots > 2) {
      at = static_cast<int>(vaddr);
      want = i->offen + i->idxen;
      if (i->op[at].kind == Kind::off || i->op[at].kind == Kind::none) return want == 0 || (refuse_with(i, "address register is missing"), false);
    }
    if (at >= 0 && (i->op[at].kind != Kind::vgpr || i->op[at].dwords != want)) {
      refuse_with(i, "expected " + std::to_string(want) + " address registers");
      return false;
    }
    return true;
  }

  // Registers past what the descriptor allocates do not exist; AGPRs follow the VGPRs in one file.
  bool check_allocation(Insn* i, Operand* o) {
    const Descriptor& d = kernel_.descriptor;
    const uint32_t last = o->index + o->dwords;
    if (o->kind == Kind::vgpr) {
      note_used(*i, &p_.used_.vgpr, last);
      const uint32_t limit = arch_ == kGfx950 ? d.accum_offset : d.vgprs_allocated;
      if (last > limit) {
        refuse_with(i, "v" + std::to_string(last - 1) + " is past the " + std::to_string(limit) +
                           " VGPRs that the descriptor allocates");
        return false;
      }
    } else if (o->kind == Kind::agpr) {
      note_used(*i, &p_.used_.agpr, last);
      if (d.accum_offset + last > d.vgprs_allocated) {
        refuse_with(i, "a" + std::to_string(last - 1) + " is past the " +
                           std::to_string(d.vgprs_allocated - d.accum_offset) +
                           " AGPRs that the descriptor allocates");
        return false;
      }
      o->kind = Kind::vgpr;
      o->index = static_cast<uint16_t>(o->index + d.accum_offset);
    } else if (o->kind == Kind::sgpr && last > kScalarFile) {
      refuse_with(i, "s" + std::to_string(last - 1) + " does not exist");
      return false;
    } else if (o->kind == Kind::sgpr && o->index < kFlatScratch) {
      note_used(*i, &p_.used_.sgpr, last);
      // gfx950 allocates SGPRs in the descriptor, six of them for VCC and its neighbours at the
      // top; gfx1151 gives every wave all of them.
      const uint32_t limit = d.sgprs_allocated ? std::min<uint32_t>(d.sgprs_allocated, 102) : 106;
      if (last > limit) {
        refuse_with(i, "s" + std::to_string(last - 1) + " is past the " + std::to_string(limit) +
                           " SGPRs that the descriptor allocates");
        return false;
      }
    }
    return true;
  }

  // A signed dword count from the next instruction, or a label of the symbol table.
  bool bind_branch(Insn* i) {
    const std::string text = i->text;
    std::string word = text.substr(text.find_last_of(' ') + 1);
    uint64_t pc = 0;
    char* end = nullptr;
    const long long n = std::strtoll(word.c_str(), &end, 0);
    if (end != word.c_str() && *end == 0) {
      pc = i->pc + 4 + 4 * static_cast<int64_t>(static_cast<int16_t>(n));
    } else {
      const auto symbol = std::find_if(object_.symbols.begin(), object_.symbols.end(),
                                       [&](const Symbol& s) { return s.name == word && !s.absolute; });
      if (symbol == object_.symbols.end()) return false;
      pc = symbol->value + object_.load_base;
    }
    i->target = p_.at(pc);
    return i->target >= 0;
  }

  // SOPP: an immediate, a branch target, or a hint in words that has no value effect here.
  bool bind_sopp(Insn* i) {
    if (i->row->flags & kBranch) return bind_branch(i);
    if (i->operands >= 1 && i->op[0].kind == Kind::constant) i->imm = static_cast<uint32_t>(i->op[0].value);
    return true;
  }

  // Registers count as used where the kernel's own code names them, not its callees' or siblings'.
  void note_used(const Insn& i, uint32_t* used, uint32_t last) {
    if (i.pc >= kernel_.entry && i.pc - kernel_.entry < kernel_.code_size) *used = std::max(*used, last);
  }

  Program& p_;
  const CodeObject& object_;
  const Kernel& kernel_;
  Arch arch_;
  uint32_t mask_dwords_;
};

int32_t Program::at(uint64_t pc) const {
  if (pc < text_begin_ || (pc - text_begin_) % 4 || (pc - text_begin_) / 4 >= index_.size()) return -1;
  return index_[(pc - text_begin_) / 4];
}

std::shared_ptr<const Program> Program::build(const CodeObject& object, const Kernel& kernel,
                                              const Disassembly& text) {
  auto p = std::make_shared<Program>();
  Binder(p.get(), object, kernel).bind_all(text);
  return p;
}

}  // namespace netra
