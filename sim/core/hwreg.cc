// Hardware registers by number: id[5:0], offset[10:6], size-1[15:11] of the immediate; the text
// spells them hwreg(NAME, offset, size).
#include "hwreg.h"

#include <cstdlib>
#include <cstring>

#include "launch.h"

namespace netra {
namespace {

enum class Reg : uint8_t {
  mode, status, trapsts, hw_id, hw_id1, hw_id2, ib_sts, sh_mem_bases, flat_scr_lo, flat_scr_hi, xcc_id,
  shader_cycles, unknown
};

struct NamedReg {
  const char* name;
  Reg reg;
};
constexpr NamedReg kRegs[] = {
    {"HW_REG_MODE", Reg::mode},
    {"HW_REG_STATUS", Reg::status},
    {"HW_REG_TRAPSTS", Reg::trapsts},
    {"HW_REG_HW_ID", Reg::hw_id},
    {"HW_REG_HW_ID1", Reg::hw_id1},
    {"HW_REG_HW_ID2", Reg::hw_id2},
    {"HW_REG_IB_STS", Reg::ib_sts},
    {"HW_REG_IB_STS2", Reg::ib_sts},
    {"HW_REG_SH_MEM_BASES", Reg::sh_mem_bases},
    {"HW_REG_FLAT_SCR_LO", Reg::flat_scr_lo},
    {"HW_REG_FLAT_SCR_HI", Reg::flat_scr_hi},
    {"HW_REG_XCC_ID", Reg::xcc_id},
    {"HW_REG_SHADER_CYCLES", Reg::shader_cycles},
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

// The number of the workgroup in dispatch order, which hands them to the XCDs in turn.
uint32_t dispatch_number(const Wave& w) {
  const uint32_t* grid = w.launch->launch.grid;
  const uint32_t* id = w.group->id;
  return id[0] + grid[0] * (id[1] + grid[1] * id[2]);
}

uint32_t value_of(const Wave& w, Reg reg) {
  const uint32_t number = dispatch_number(w), simd = w.index & 3, slot = w.hw_slot;
  switch (reg) {
    case Reg::mode: return w.mode;
    case Reg::status:
      return static_cast<uint32_t>(w.scc) | (w.exec() == 0) << 9 | (w.vcc() == 0) << 10;
    case Reg::trapsts: return 0;      // exceptions are not recorded
    case Reg::ib_sts: return 0;       // nothing is ever outstanding
    case Reg::hw_id: {                // wave 3:0, SIMD 5:4, CU 11:8, SE 15:13, workgroup 19:16
      const uint32_t cu = number / kXccs;
      return (slot & 15) | simd << 4 | (cu & 7) << 8 | (cu >> 3 & 3) << 13 | (number & 15) << 16;
    }
    case Reg::hw_id1:                 // wave 4:0, SIMD 9:8, WGP 13:10, SA 16, SE 20:18
      return (slot & 31) | simd << 8 | number % 5 << 10 | (number / 5 & 1) << 16 |
             (number / 10 & 1) << 18;
    case Reg::hw_id2: return (number & 31) << 16;   // workgroup 20:16
    case Reg::sh_mem_bases: return (read_special(w, Special::shared_base, 1) & 0xffff0000) | read_special(w, Special::private_base, 1) >> 16;
    case Reg::flat_scr_lo: return static_cast<uint32_t>(w.scratch_base);
    case Reg::flat_scr_hi: return static_cast<uint32_t>(w.scratch_base >> 32);
    case Reg::xcc_id: return number % kXccs;
    case Reg::shader_cycles: return static_cast<uint32_t>(cycles(w)) & 0xfffff;
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
  if (f.reg == Reg::trapsts) return;   // clears flags that are never set
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

uint32_t gpr_idx_roles(const Insn& i) {
  static constexpr const char* kRoles[] = {"SRC0", "SRC1", "SRC2", "DST"};
  const char* list = std::strstr(i.text, "gpr_idx(");
  uint32_t bits = 0;
  for (uint32_t k = 0; list && k < 4; ++k)
    if (std::strstr(list, kRoles[k])) bits |= 1u << k;
  return bits;
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
