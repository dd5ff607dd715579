#include "flow.h"

#include <bit>
#include <string_view>

namespace netra {
namespace {

bool starts(std::string_view s, std::string_view with) { return s.substr(0, with.size()) == with; }
bool starts_any(std::string_view s, std::initializer_list<std::string_view> list) {
  for (const std::string_view with : list)
    if (starts(s, with)) return true;
  return false;
}

bool wide_sum(std::string_view n) { return starts_any(n, {"v_mad_u64_u32", "v_mad_i64_i32", "v_lshl_add_u64"}); }

Flow by_name(std::string_view n) {
  if (wide_sum(n) || starts_any(n, {"v_lshlrev_b64", "v_lshrrev_b64", "v_ashrrev_i64"})) return Flow::wide;
  if (starts_any(n, {"v_permlane", "ds_bpermute", "ds_permute", "ds_swizzle"})) return Flow::lanes;
  if (starts(n, "v_cndmask")) return Flow::select;
  if (starts_any(n, {"v_mov", "v_accvgpr", "s_mov", "s_cmov", "v_swap", "v_readlane", "v_readfirstlane", "v_writelane", "s_cselect"}))
    return Flow::copy;
  if (n.find("saveexec") != n.npos || n.find("wrexec") != n.npos) return Flow::use;
  if (starts_any(n, {"v_and_", "v_or_", "v_xor_", "v_xnor_", "v_not_", "v_bfi_", "v_bfe_", "v_bfrev_", "v_lshlrev", "v_lshrrev",
                     "v_ashrrev", "v_lshl_or", "v_and_or", "v_or3", "v_xor3", "v_perm_", "v_alignb", "v_pack", "v_bitop3", "v_pk_"}))
    return Flow::bits;
  if (starts_any(n, {"s_and_", "s_and", "s_or_", "s_or", "s_xor_", "s_nand_", "s_nor_", "s_xnor_", "s_not_", "s_lshl_b", "s_lshr_",
                     "s_ashr_", "s_bfe_", "s_pack_", "s_bitset", "s_brev", "s_sext"}))
    return Flow::bits;
  return Flow::use;
}

}  // namespace

Flow flow_of(const Insn& i) {
  if (i.x) {
    // A pair counts as a copy when one half is: the facts do not tell the halves apart.
    const Flow x = by_name(mnemonic_of(*i.x)), y = by_name(mnemonic_of(*i.y));
    return x == Flow::use && y == Flow::use ? Flow::use : Flow::bits;
  }
  return by_name(mnemonic_of(i));
}

uint8_t combined(const Insn& i, const uint8_t* sources, int count) {
  uint8_t all = 0;
  for (int k = 0; k < count; ++k) all = static_cast<uint8_t>(all | sources[k]);
  if (i.x || !i.row) return all;
  const std::string_view n = mnemonic_of(i);
  const auto constant = [&](int slot, uint32_t* value) {
    if (slot >= i.operands || i.op[slot].kind != Kind::constant) return false;
    *value = i.op[slot].bits_lo;
    return true;
  };
  uint32_t c = 0;
  if (starts(n, "v_and_b32") || starts(n, "s_and_b32")) {
    if (!constant(1, &c) && !constant(2, &c)) return all;
    uint8_t kept = 0;
    for (int b = 0; b < 4; ++b)
      if (c >> (8 * b) & 0xff) kept = static_cast<uint8_t>(kept | 1u << b);
    return all & kept;
  }
  const bool left = starts(n, "v_lshlrev_b32"), right = starts(n, "v_lshrrev_b32"), arithmetic = starts(n, "v_ashrrev_i32");
  if ((left || right || arithmetic) && constant(1, &c)) {
    const uint32_t by = c & 31, whole = by / 8, more = by % 8 != 0;
    if (left) return static_cast<uint8_t>((all << whole | (more ? all << (whole + 1) : 0)) & 15);
    const uint32_t moved = static_cast<uint32_t>(all) >> whole | (more ? static_cast<uint32_t>(all) >> (whole + 1) << 0 : 0);
    const uint32_t sign = arithmetic && all & 8 ? 15u << (3 - (whole > 3 ? 3 : whole)) : 0;
    return static_cast<uint8_t>((moved | sign) & 15);
  }
  if (starts(n, "v_bfe_") && constant(3, &c)) {
    uint32_t offset = 0;
    if (!constant(2, &offset)) return all ? 15 : 0;
    const uint32_t first = (offset & 31) / 8, last = c ? ((offset & 31) + (c & 31) - 1) / 8 : first;
    uint8_t covered = 0;
    for (uint32_t b = first; b <= last && b < 4; ++b) covered = static_cast<uint8_t>(covered | 1u << b);
    return all & covered ? 15 : 0;
  }
  if (starts(n, "v_perm_b32") && count >= 2 && constant(3, &c)) {
    uint8_t out = 0;
    for (int b = 0; b < 4; ++b) {
      const uint32_t sel = c >> (8 * b) & 0xff;
      const bool bad = sel < 4 ? sources[1] >> sel & 1 : sel < 8 ? sources[0] >> (sel - 4) & 1 : sel < 12 && all;
      if (bad) out = static_cast<uint8_t>(out | 1u << b);
    }
    return out;
  }
  if (starts_any(n, {"v_lshl", "v_lshr", "v_ashr", "v_align", "s_lsh", "s_ashr", "s_bfe", "v_bfe", "v_bfrev", "v_perm", "s_sext", "s_pack", "v_pack"}))
    return all ? 15 : 0;
  return all;
}

bool is_wide_sum(const Insn& i) { return wide_sum(mnemonic_of(i)); }

uint8_t combined_wide(const Insn& i, int slot, uint8_t bytes) {
  if (!bytes) return 0;
  const auto upwards = static_cast<uint8_t>(0xffu << std::countr_zero(bytes));
  const std::string_view n = mnemonic_of(i);
  const bool left = starts(n, "v_lshlrev"), arithmetic = starts(n, "v_ashrrev");
  if (wide_sum(n)) return i.clamp || (slot == 2 && starts(n, "v_lshl_add")) ? 0xff : upwards;
  if (slot == 1) return 0xff;   // how far
  if (i.op[1].kind != Kind::constant) return left ? upwards : 0xff;
  const uint32_t x = bytes, by = i.op[1].bits_lo & 63, whole = by / 8, more = by % 8 != 0;
  if (left) return static_cast<uint8_t>(x << whole | (more ? x << (whole + 1) : 0));
  const uint32_t sign = arithmetic && x & 0x80 ? 0xffu << (7 - whole) : 0;
  return static_cast<uint8_t>(x >> whole | (more ? x >> (whole + 1) : 0) | sign);
}

uint8_t spread_up(uint8_t bytes) {
  for (int b = 0; b < 4; ++b)
    if (bytes >> b & 1) return static_cast<uint8_t>(15u << b & 15u);
  return 0;
}

}  // namespace netra
