// The disassembler's text of one instruction, read into operands and modifiers.
//
// Nothing is guessed: a word that is neither an operand nor a modifier of the tables below makes
// the instruction refuse to execute, with that word in the message.
#include "format.h"
#include "program.h"

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace netra {
namespace {

struct Cursor {
  const char* p;
  bool eat(const char* word) {
    const size_t n = std::strlen(word);
    if (std::strncmp(p, word, n) != 0) return false;
    p += n;
    return true;
  }
  bool number(int64_t* value) {
    char* end = nullptr;
    const bool negative = *p == '-';
    const char* digits = negative ? p + 1 : p;
    if (!std::isdigit(static_cast<unsigned char>(*digits))) return false;
    const uint64_t u = std::strtoull(digits, &end, 0);
    *value = static_cast<int64_t>(negative ? 0 - u : u);
    p = end;
    return true;
  }
};

struct Named {
  const char* name;
  Kind kind;
  uint16_t index;
  uint8_t dwords;
};
// Longer names first where one begins another.
constexpr Named kNamed[] = {
    {"vcc_lo", Kind::sgpr, kVcc, 1},
    {"vcc_hi", Kind::sgpr, kVcc + 1, 1},
    {"vcc", Kind::sgpr, kVcc, 2},
    {"exec_lo", Kind::sgpr, kExec, 1},
    {"exec_hi", Kind::sgpr, kExec + 1, 1},
    {"exec", Kind::sgpr, kExec, 2},
    {"m0", Kind::sgpr, kM0, 1},
    {"null", Kind::sgpr, kNull, 1},
    {"flat_scratch_lo", Kind::sgpr, kFlatScratch, 1},
    {"flat_scratch_hi", Kind::sgpr, kFlatScratch + 1, 1},
    {"flat_scratch", Kind::sgpr, kFlatScratch, 2},
    {"xnack_mask_lo", Kind::sgpr, kXnackMask, 1},
    {"xnack_mask_hi", Kind::sgpr, kXnackMask + 1, 1},
    {"xnack_mask", Kind::sgpr, kXnackMask, 2},
    {"src_scc", Kind::special, static_cast<uint16_t>(Special::scc), 1},
    {"src_vccz", Kind::special, static_cast<uint16_t>(Special::vccz), 1},
    {"src_execz", Kind::special, static_cast<uint16_t>(Special::execz), 1},
    {"src_shared_base", Kind::special, static_cast<uint16_t>(Special::shared_base), 2},
    {"src_shared_limit", Kind::special, static_cast<uint16_t>(Special::shared_limit), 2},
    {"src_private_base", Kind::special, static_cast<uint16_t>(Special::private_base), 2},
    {"src_private_limit", Kind::special, static_cast<uint16_t>(Special::private_limit), 2},
    {"off", Kind::off, 0, 0},
};

// v5, v[2:3], s4, a[0:3], ttmp7, and the named ones. Moves the cursor past it.
bool parse_register(Cursor* c, Operand* o) {
  for (const Named& n : kNamed) {
    const size_t len = std::strlen(n.name);
    if (std::strncmp(c->p, n.name, len) == 0 && !std::isalnum(static_cast<unsigned char>(c->p[len])) &&
        c->p[len] != '_') {
      c->p += len;
      o->kind = n.kind;
      o->index = n.index;
      o->dwords = n.dwords;
      return true;
    }
  }
  uint16_t base = 0;
  Cursor t = *c;
  if (t.eat("ttmp")) o->kind = Kind::sgpr, base = kTtmp;
  else if (t.eat("v")) o->kind = Kind::vgpr;
  else if (t.eat("s")) o->kind = Kind::sgpr;
  else if (t.eat("a")) o->kind = Kind::agpr;
  else return false;
  int64_t first = 0, last = 0;
  if (t.eat("[")) {
    if (!t.number(&first)) return false;
    last = first;
    if (t.eat(":") && !t.number(&last)) return false;
    if (!t.eat("]")) return false;
  } else {
    if (!t.number(&first)) return false;
    last = first;
  }
  if (last < first || last > 1023 || last - first > 63) return false;
  o->index = static_cast<uint16_t>(base + first);
  o->dwords = static_cast<uint8_t>(last - first + 1);
  if (t.eat(".l")) o->half = 1;
  else if (t.eat(".h")) o->half = 2;
  *c = t;
  return true;
}

bool parse_constant(Cursor* c, Operand* o) {
  Cursor t = *c;
  o->kind = Kind::constant;
  if (t.eat("lit(")) {
    int64_t v;
    if (!t.number(&v) || !t.eat(")")) return false;
    o->value = static_cast<uint64_t>(v);
    o->literal = true;
    *c = t;
    return true;
  }
  const char* digits = *t.p == '-' ? t.p + 1 : t.p;
  if (!std::isdigit(static_cast<unsigned char>(*digits))) return false;
  const bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
  size_t len = std::strspn(digits, hex ? "0123456789abcdefABCDEFx" : "0123456789");
  if (!hex && (digits[len] == '.' || digits[len] == 'e')) {
    char* end = nullptr;
    const double d = std::strtod(t.p, &end);
    std::memcpy(&o->value, &d, 8);
    o->is_fp_text = true;
    t.p = end;
  } else {
    int64_t v;
    if (!t.number(&v)) return false;
    o->value = static_cast<uint64_t>(v);
    o->literal = hex;
  }
  *c = t;
  return true;
}

// One operand with its source modifiers: -v1, |v1|, -|v[0:1]|, sext(v2), neg(1), 0x40, 1.0, off.
// Anything else is kept as text for the class to read (hwreg(...), labels).
void parse_operand(const std::string& text, Operand* o) {
  Cursor c{text.c_str()};
  bool paren = false, bar = false;
  if (c.eat("neg(")) o->neg = true, paren = true;
  else if (c.eat("sext(")) o->sext = true, paren = true;
  else if (*c.p == '-' && !std::isdigit(static_cast<unsigned char>(c.p[1]))) o->neg = true, ++c.p;
  if (c.eat("|")) o->abs = true, bar = true;
  if (parse_register(&c, o) || parse_constant(&c, o)) {
    const bool closed = (!bar || c.eat("|")) && (!paren || c.eat(")"));
    if (closed && *c.p == 0) return;
  }
  *o = Operand{};
  o->kind = Kind::text;
}

// [1,0,1] as bits, first element lowest; `count` elements.
bool bit_list(Cursor* c, uint8_t* bits, uint8_t* count = nullptr) {
  if (!c->eat("[")) return false;
  *bits = 0;
  for (int k = 0; k < 8; ++k) {
    int64_t v;
    if (!c->number(&v) || v < 0 || v > 1) return false;
    *bits = static_cast<uint8_t>(*bits | v << k);
    if (count) *count = static_cast<uint8_t>(k + 1);
    if (c->eat("]")) return true;
    if (!c->eat(",")) return false;
  }
  return false;
}

struct DppWord {
  const char* word;
  DppCtrl ctrl;
  bool has_arg;
};
constexpr DppWord kDppWords[] = {
    {"row_shl:", DppCtrl::row_shl, true},       {"row_shr:", DppCtrl::row_shr, true},
    {"row_ror:", DppCtrl::row_ror, true},       {"wave_shl:", DppCtrl::wave_shl, true},
    {"wave_rol:", DppCtrl::wave_rol, true},     {"wave_shr:", DppCtrl::wave_shr, true},
    {"wave_ror:", DppCtrl::wave_ror, true},     {"row_mirror", DppCtrl::row_mirror, false},
    {"row_half_mirror", DppCtrl::row_half_mirror, false},
    {"row_bcast:", DppCtrl::row_bcast, true},   {"row_newbcast:", DppCtrl::row_newbcast, true},
    {"row_share:", DppCtrl::row_share, true},   {"row_xmask:", DppCtrl::row_xmask, true},
};

std::optional<Sel> parse_sel(Cursor* c) {
  if (c->eat("BYTE_")) {
    const char d = *c->p++;
    if (d < '0' || d > '3') return std::nullopt;
    return static_cast<Sel>(d - '0');
  }
  if (c->eat("WORD_0")) return Sel::word0;
  if (c->eat("WORD_1")) return Sel::word1;
  if (c->eat("DWORD")) return Sel::dword;
  return std::nullopt;
}

// ds_swizzle's pattern in words -> the 16-bit offset that it encodes (LLVM AMDGPUUsage).
bool parse_swizzle(const std::string& body, uint32_t* imm) {
  Cursor c{body.c_str()};
  int64_t a = 0, b = 0;
  if (c.eat("QUAD_PERM")) {
    *imm = 0x8000;
    for (int k = 0; k < 4; ++k) {
      if (!c.eat(",") || !c.number(&a) || a < 0 || a > 3) return false;
      *imm |= static_cast<uint32_t>(a) << (2 * k);
    }
  } else if (c.eat("BITMASK_PERM,\"")) {
    uint32_t and_mask = 0, or_mask = 0, xor_mask = 0;
    for (int k = 4; k >= 0; --k) {
      const char d = *c.p++;
      if (d == '1') or_mask |= 1u << k;
      else if (d == 'p') and_mask |= 1u << k;
      else if (d == 'i') and_mask |= 1u << k, xor_mask |= 1u << k;
      else if (d != '0') return false;
    }
    if (!c.eat("\"")) return false;
    *imm = and_mask | or_mask << 5 | xor_mask << 10;
  } else if (c.eat("BROADCAST,")) {
    if (!c.number(&a) || !c.eat(",") || !c.number(&b)) return false;
    *imm = (0x1f & ~static_cast<uint32_t>(a - 1)) | static_cast<uint32_t>(b) << 5;
  } else if (c.eat("SWAP,")) {
    if (!c.number(&a)) return false;
    *imm = 0x1f | static_cast<uint32_t>(a) << 10;
  } else if (c.eat("REVERSE,")) {
    if (!c.number(&a)) return false;
    *imm = 0x1f | static_cast<uint32_t>(a - 1) << 10;
  } else if (c.eat("ROTATE,")) {
    if (!c.number(&a) || !c.eat(",") || !c.number(&b)) return false;
    *imm = 0xc000 | static_cast<uint32_t>(a) << 10 | static_cast<uint32_t>(b) << 5;
  } else if (c.eat("FFT,")) {
    if (!c.number(&a)) return false;
    *imm = 0xe000 | static_cast<uint32_t>(a);
  } else {
    return false;
  }
  return *c.p == 0;
}

// One word after the operands. False: not a modifier that is known here.
bool parse_modifier(const std::string& word, Insn* n) {
  Cursor c{word.c_str()};
  int64_t v = 0;
  const auto done = [&c] { return *c.p == 0; };
  const auto byte = [&](uint8_t* field, uint32_t mod) {
    if (!c.number(&v)) return false;
    *field = static_cast<uint8_t>(v);
    n->mods |= mod;
    return done();
  };
  if (c.eat("offset:swizzle(")) {
    std::string body = c.p;
    if (body.empty() || body.back() != ')') return false;
    body.pop_back();
    n->mods |= kModSwizzle;
    return parse_swizzle(body, &n->imm);
  }
  if (c.eat("offset0:")) return byte(&n->offset0, kModOffset01);
  if (c.eat("offset1:")) return byte(&n->offset1, kModOffset01);
  if (c.eat("offset:")) {
    if (!c.number(&v)) return false;
    n->offset = static_cast<int32_t>(v);
    n->mods |= kModOffset;
    return done();
  }
  const auto bits = [&](uint8_t* field, uint32_t mod) {
    n->mods |= mod;
    return bit_list(&c, field) && done();
  };
  if (c.eat("op_sel_hi:")) return bits(&n->op_sel_hi, kModOpSelHi);
  if (c.eat("op_sel:")) {
    n->mods |= kModOpSel;
    return bit_list(&c, &n->op_sel, &n->op_sel_count) && done();
  }
  if (c.eat("neg:")) return bits(&n->blgp, kModBroadcast);   // f64 MFMA: the bits of blgp negate
  if (c.eat("neg_lo:")) return bits(&n->neg_lo, kModNegLo);
  if (c.eat("neg_hi:")) return bits(&n->neg_hi, kModNegHi);
  struct Word {
    const char* word;
    uint32_t mod;
    uint8_t Insn::*number;
    uint8_t value;
    bool Insn::*truth;
  };
  static constexpr Word kWords[] = {
      {"clamp", kModClamp, nullptr, 0, &Insn::clamp}, {"mul:2", kModOmod, &Insn::omod, 1, nullptr},
      {"mul:4", kModOmod, &Insn::omod, 2, nullptr},   {"div:2", kModOmod, &Insn::omod, 3, nullptr},
      {"offen", kModOffen, nullptr, 0, &Insn::offen}, {"idxen", kModIdxen, nullptr, 0, &Insn::idxen},
      {"lds", kModLds, nullptr, 0, &Insn::lds},       {"gds", kModGds, nullptr, 0, &Insn::gds},
      {"sc0", kModCache, nullptr, 0, &Insn::sc0},     {"glc", kModCache, nullptr, 0, &Insn::sc0},
      {"sc1", kModCache, nullptr, 0, &Insn::sc1},     {"dlc", kModCache, nullptr, 0, &Insn::sc1},
      {"nt", kModCache, nullptr, 0, &Insn::nt},       {"slc", kModCache, nullptr, 0, &Insn::nt},
      {"tfe", kModTfe, nullptr, 0, nullptr},
  };
  for (const Word& k : kWords) {
    if (word != k.word) continue;
    n->mods |= k.mod;
    if (k.number) n->*k.number = k.value;
    if (k.truth) n->*k.truth = true;
    return true;
  }
  if (c.eat("cbsz:")) return byte(&n->cbsz, kModBroadcast);
  if (c.eat("abid:")) return byte(&n->abid, kModBroadcast);
  if (c.eat("blgp:")) return byte(&n->blgp, kModBroadcast);
  if (c.eat("bitop3:")) {
    if (!c.number(&v)) return false;
    n->imm = static_cast<uint32_t>(v);
    n->mods |= kModBitop;
    return done();
  }
  if (c.eat("format:")) {
    Format f;
    const bool number = std::isdigit(static_cast<unsigned char>(*c.p));   // past the table: invalid
    if (number) f.layout = 0;
    else if (!parse_format(c.p, &f)) return false;
    n->imm = 0x100u | f.layout | static_cast<uint32_t>(f.kind) << 4;
    return n->mods |= kModFormat, true;
  }
  if (c.eat("quad_perm:[")) {
    n->dpp.ctrl = DppCtrl::quad_perm;
    n->mods |= kModDpp;
    for (int k = 0; k < 4; ++k) {
      if (!c.number(&v) || v < 0 || v > 3) return false;
      n->dpp.arg = static_cast<uint8_t>(n->dpp.arg | v << (2 * k));
      if (!c.eat(k < 3 ? "," : "]")) return false;
    }
    return done();
  }
  if (c.eat("dpp8:[")) {
    n->dpp.ctrl = DppCtrl::dpp8;
    n->mods |= kModDpp8;
    for (int k = 0; k < 8; ++k) {
      if (!c.number(&v) || v < 0 || v > 7) return false;
      n->dpp.select[k] = static_cast<uint8_t>(v);
      if (!c.eat(k < 7 ? "," : "]")) return false;
    }
    return done();
  }
  for (const DppWord& d : kDppWords) {
    if (!c.eat(d.word)) continue;
    n->dpp.ctrl = d.ctrl;
    n->mods |= kModDpp;
    return d.has_arg ? byte(&n->dpp.arg, kModDpp) : done();
  }
  if (c.eat("row_mask:")) return byte(&n->dpp.row_mask, kModDpp);
  if (c.eat("bank_mask:")) return byte(&n->dpp.bank_mask, kModDpp);
  if (word == "bound_ctrl:1") {
    n->dpp.bound_ctrl = true;
    n->mods |= kModBoundCtrl;
    return true;
  }
  if (word == "fi:1") {
    n->dpp.fi = true;
    n->mods |= kModBoundCtrl;
    return true;
  }
  if (c.eat("dst_sel:") || c.eat("src0_sel:") || c.eat("src1_sel:")) {
    n->sdwa.on = true;
    n->mods |= kModSdwa;
    const std::optional<Sel> s = parse_sel(&c);
    if (!s) return false;
    (word[0] == 'd' ? n->sdwa.dst : word[3] == '0' ? n->sdwa.src0 : n->sdwa.src1) = *s;
    return done();
  }
  if (c.eat("dst_unused:UNUSED_")) {
    n->sdwa.on = true;
    n->mods |= kModSdwa;
    if (c.eat("PAD")) n->sdwa.unused = Unused::pad;
    else if (c.eat("SEXT")) n->sdwa.unused = Unused::sext;
    else if (c.eat("PRESERVE")) n->sdwa.unused = Unused::preserve;
    else return false;
    return done();
  }
  return false;
}

// Cuts at `separator` outside brackets, parentheses and quotes.
std::vector<std::string> split(const std::string& s, char separator) {
  std::vector<std::string> parts;
  int depth = 0;
  bool quoted = false;
  std::string part;
  for (const char ch : s) {
    if (ch == '"') quoted = !quoted;
    if (ch == '[' || ch == '(') ++depth;
    if (ch == ']' || ch == ')') --depth;
    if (ch == separator && depth == 0 && !quoted) {
      parts.push_back(part);
      part.clear();
    } else {
      part += ch;
    }
  }
  parts.push_back(part);
  for (std::string& p : parts) {
    const size_t a = p.find_first_not_of(' '), b = p.find_last_not_of(' ');
    p = a == std::string::npos ? "" : p.substr(a, b - a + 1);
  }
  return parts;
}

}  // namespace

bool parse_instruction(const std::string& text, Insn* insn, std::string* mnemonic,
                       std::string* refusal) {
  const size_t space = text.find(' ');
  *mnemonic = text.substr(0, space);
  if (space == std::string::npos) return true;
  // Hints and waits print a language of their own, which the SOPP class reads from the text.
  for (const char* own : {"s_waitcnt", "s_waitcnt_depctr", "s_delay_alu", "s_sendmsg", "s_sendmsghalt",
                          "s_wait_event", "s_wait_idle", "s_set_gpr_idx_mode"})
    if (*mnemonic == own) return true;
  const std::vector<std::string> parts = split(text.substr(space + 1), ',');
  for (size_t k = 0; k < parts.size(); ++k) {
    std::vector<std::string> words = {parts[k]};
    if (k + 1 == parts.size()) words = split(parts[k], ' ');
    for (size_t j = 0; j < words.size(); ++j) {
      if (words[j].empty()) continue;
      const uint32_t before = insn->mods;
      const bool first = j == 0;
      Operand o;
      if (first) parse_operand(words[j], &o);
      if (first && o.kind != Kind::text) {
        // fall through to the push below
      } else if (parse_modifier(words[j], insn)) {
        continue;
      } else if (!first) {
        insn->mods = before;
        *refusal = "modifier '" + words[j] + "' is not understood";
        return false;
      }
      if (insn->operands == kMaxSlots) {
        *refusal = "more operands than any instruction has";
        return false;
      }
      insn->op[insn->operands++] = o;
      if (o.neg) insn->mods |= kModNeg;
      if (o.abs) insn->mods |= kModAbs;
      if (o.sext) insn->mods |= kModSext;
      if (o.half) insn->mods |= kModHalf;
    }
  }
  return true;
}

}  // namespace netra
