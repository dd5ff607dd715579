// Hardware registers by number: id[5:0], offset[10:6], size-1[15:11] of the immediate; the text
// spells them hwreg(NAME, offset, size).
#include "hwreg.h"

#include <cstdlib>
#include <cstring>

#include "launch.h"

namespace netra {
namespace {

enum class Reg : uint8_t { mode, status, hw_id, xcc_id, shader_cycles, unknown };

struct NamedReg {
  const char* name;
  Reg reg;
};
constexpr NamedReg kRegs[] = {
    {"HW_REG_MODE", Reg::mode},     {"HW_REG_STATUS", Reg::status},
    {"HW_REG_HW_ID1", Reg::hw_id},  {"HW_REG_HW_ID", Reg::hw_id},
    {"HW_REG_XCC_ID", Reg::xcc_id}, {"HW_REG_SHADER_CYCLES", Reg::shader_cycles},
};
constexpr uint32_t kXccs = 8;   // MI350X

struct Field {
  Reg reg = Reg::unknown;
  uint32_t offset = 0, size = 32;
};

Field parse(const char* text) {
  Field f;
  const char* p = std::strstr(text, "hwreg(");
  if (!p) return f;
  p += 6;
  for (const NamedReg& n : kRegs) {
    const size_t len = std::strlen(n.name);
    if (std::strncmp(p, n.name, len) != 0 || (p[len] != ',' && p[len] != ')')) continue;
    f.reg = n.reg;
    p += len;
    if (*p == ',') {
      char* end = nullptr;
      f.offset = static_cast<uint32_t>(std::strtoul(p + 1, &end, 0));
      f.size = static_cast<uint32_t>(std::strtoul(end + 1, nullptr, 0));
    }
    return f;
  }
  return f;
}

uint32_t mask_of(uint32_t size) { return size >= 32 ? ~0u : (1u << size) - 1; }

uint32_t value_of(const Wave& w, Reg reg) {
  switch (reg) {
    case Reg::mode: return w.mode;
    case Reg::status:
      return static_cast<uint32_t>(w.scc) | (w.exec() == 0) << 9 | (w.vcc() == 0) << 10;
    case Reg::hw_id: return w.hw_slot & 0xf;
    case Reg::xcc_id: return (w.group->id[0] % kXccs);
    case Reg::shader_cycles: return static_cast<uint32_t>(4 * w.executed) & 0xfffff;
    case Reg::unknown: break;
  }
  return 0;
}

}  // namespace

void getreg(Wave& w, const Insn& i) {
  const Field f = parse(i.text);
  if (f.reg == Reg::unknown) return fault(w, i, 719, std::string("hardware register is not implemented: ") + i.text);
  write_scalar(w, i.op[0], value_of(w, f.reg) >> f.offset & mask_of(f.size));
}

void setreg(Wave& w, const Insn& i) {
  const Field f = parse(i.text);
  if (f.reg != Reg::mode) return fault(w, i, 719, std::string("hardware register cannot be written: ") + i.text);
  const uint32_t bits = read_scalar(w, i.op[1]) & mask_of(f.size), m = mask_of(f.size) << f.offset;
  w.set_mode((w.mode & ~m) | (bits << f.offset & m));
}

Row hwreg_row(const char* name, Execute execute, bool get) {
  Row r;
  r.name = name;
  r.cls = Class::sopk;
  r.execute = execute;
  r.slots = 2;
  r.slot[0] = get ? Slot{Type::b32, kWrite, 0} : Slot{Type::text, kRead, 0};
  r.slot[1] = get ? Slot{Type::text, kRead, 0} : Slot{Type::b32, kRead, 0};
  return r;
}

void jump(Wave& w, const Insn& i, uint64_t pc) {
  const int32_t at = w.launch->program->at(pc & ~3ull);
  if (at < 0) {
    char where[32];
    std::snprintf(where, sizeof where, "0x%llx", static_cast<unsigned long long>(pc));
    return fault(w, i, 719, std::string("jump to ") + where + ", where no instruction of the code object starts");
  }
  w.ip = static_cast<uint32_t>(at);
}

}  // namespace netra
