#include "lds_banks.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "../launch.h"

namespace netra {
namespace {

constexpr uint32_t kWgpMode = 1u << 29;   // of rsrc1, on gfx1151
// Lanes 0-3, 12-15 and 20-27 of 32: the first of the two phases of a 16-byte read on gfx950.
constexpr uint32_t kFirstOf128 = 0x0ff0f00f;

template <size_t N>
bool any_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

BankModel::BankModel(const LaunchState& launch)
    : gfx950_(launch.object->arch == "gfx950"),
      cu_wave32_(launch.kernel->descriptor.wave32 && !(launch.kernel->descriptor.rsrc1 & kWgpMode)),
      banks_(gfx950_ ? 64 : 32) {}

bool BankModel::known(const Insn& i) const {
  static constexpr std::array<std::string_view, 3> kGfx950Reads = {"ds_read_b32", "ds_read_b64", "ds_read_b128"};
  static constexpr std::array<std::string_view, 1> kGfx1151Reads = {"ds_load_b32"};
  const std::string_view name = mnemonic_of(i);
  return gfx950_ ? any_of(name, kGfx950Reads) : cu_wave32_ && any_of(name, kGfx1151Reads);
}

unsigned BankModel::phase_of(uint32_t dwords, unsigned lane) const {
  if (!gfx950_) return lane / (32 / dwords);
  if (dwords < 4) return dwords == 1 ? 0 : lane / 32;
  return lane / 32 * 2 + !(kFirstOf128 >> (lane & 31) & 1);
}

BankCount BankModel::count(Accesses accesses) const {
  // An instruction with two addresses a lane makes two accesses, one after the other.
  std::array<uint8_t, 64> seen{};
  std::array<std::vector<uint64_t>, 16> wanted;   // dwords, by access and phase
  for (const MemoryAccess& a : accesses) {
    if (a.space != Space::lds) continue;
    const uint32_t dwords = a.bytes <= 4 ? 1 : a.bytes <= 8 ? 2 : 4;   // 12 bytes as 16
    const size_t which = std::min<size_t>(seen[a.lane]++, 1) * 8 + phase_of(dwords, a.lane);
    for (uint64_t d = a.address / 4; d <= (a.address + a.bytes - 1) / 4; ++d) wanted[which].push_back(d);
  }
  BankCount total;
  for (std::vector<uint64_t>& phase : wanted) {
    if (phase.empty()) continue;
    std::sort(phase.begin(), phase.end());
    phase.erase(std::unique(phase.begin(), phase.end()), phase.end());
    std::array<uint32_t, 64> in_bank{};
    for (const uint64_t d : phase) ++in_bank[d % banks_];
    ++total.phases;
    total.conflicts += *std::max_element(in_bank.begin(), in_bank.end()) - 1;
  }
  return total;
}

}  // namespace netra
