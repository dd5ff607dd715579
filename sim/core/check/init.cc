#include "init.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <unordered_map>

#include "../dpp.h"
#include "../launch.h"
#include "../memory_access.h"
#include "flow.h"
#include "lanes_touched.h"
#include "observer.h"

namespace netra {
namespace {

constexpr uint8_t kAll = 15;   // every byte of a dword

// A bit for each byte that nothing has defined.
struct WaveShadow {
  std::vector<uint8_t> v;              // [row][64]
  std::vector<uint8_t> some;           // by row: a lane may have such a byte
  std::vector<uint8_t> soft;           // by row: that came out of scratch, see `uses`
  uint32_t s[kScalarFile + 1] = {};    // scalar registers have a bit for each bit: masks are built lane by lane
  std::vector<const Insn*> origin;     // by row: what put undefined bytes there; null: nothing ever wrote it
  const Insn* s_origin[kScalarFile + 1] = {};
  std::vector<uint8_t> scratch;        // by byte, as Wave::scratch: 1 where undefined

  uint8_t* row(uint32_t r) { return &v[static_cast<size_t>(r) * 64]; }
};

// SGPRs that the dispatch fills: user SGPRs, preloaded arguments, workgroup numbers.
uint32_t defined_sgprs(const Descriptor& k) {
  static constexpr uint8_t kUser[] = {4, 2, 2, 2, 2, 2, 1};
  uint32_t n = k.preload & 127;
  for (int b = 0; b < 7; ++b)
    if (k.properties >> b & 1) n += kUser[b];
  n = std::max(n, k.rsrc2 >> 1 & 31);
  return n + static_cast<uint32_t>(std::popcount(k.rsrc2 >> 7 & 15));
}

class Init : public Observer {
 public:
  Init(Watch& watch, LaunchState& launch) : watch_(watch), launch_(launch) {}

  void start_group(Group& g) override {
    lds_[&g].assign(g.lds.size(), 1);
    const uint32_t sgprs = defined_sgprs(launch_.kernel->descriptor);
    for (Wave& w : g.waves) {
      WaveShadow& s = waves_[&w];
      s.v.assign(static_cast<size_t>(w.vgprs + 1) * 64, kAll);
      s.some.assign(w.vgprs + 1, 1);
      s.soft.assign(w.vgprs + 1, 0);
      s.origin.assign(w.vgprs + 1, nullptr);
      std::fill(std::begin(s.s), std::end(s.s), ~0u);
      std::fill_n(s.s, sgprs, 0u);
      for (const int n : {102, 103, 104, 105, int{kNull}, int{kExec}, kExec + 1}) s.s[n] = 0;
      std::fill(std::begin(s.s_origin), std::end(s.s_origin), nullptr);
      s.scratch.assign(static_cast<size_t>(w.lanes) * w.scratch_bytes, 1);
      std::fill_n(s.row(0), 64, uint8_t{0});
      s.some[0] = 0;
    }
    last_ = nullptr;
  }

  void before(Wave& w, const Insn& i, const Facts& facts) override {
    WaveShadow& s = shadow(w);
    active_ = false;
    const Facts& f = resolve(w, facts, &moved_);
    resolved_ = &f;
    lanes_ = lanes_touched(w, f);
    for (int k = 0; k < f.reads; ++k)
      if (undefined(s, f.read[k])) {
        active_ = true;
        break;
      }
    if (active_) pass_through(w, s, i, f);
  }

  void after(Wave& w, const Insn& i, const Facts&, Accesses accesses) override {
    WaveShadow& s = shadow(w);
    const Facts& f = *resolved_;
    loaded_scalars_.clear();
    if (!accesses.empty()) memory(w, s, i, f, accesses);
    const bool loads = f.is(kIsVmem | kIsDs) && !accesses.empty();
    for (int k = 0; k < f.writes; ++k) {
      const Ref& r = f.written[k];
      if (r.file == File::scalar) {
        for (uint32_t n = 0; n < r.count; ++n) {
          s.s[r.index + n] = !active_ ? 0 : r.index == kScc ? scc_out_ : scalar_out_[std::min<uint32_t>(n, 1)];
          s.s_origin[r.index + n] = &i;
        }
      } else if (!loads) {
        for (uint32_t n = 0; n < r.count; ++n)
          define(w, s, i, r.index + n, active_ ? out_[std::min<uint32_t>(n, kRows - 1)] : nullptr, r.bytes, written_lanes(w, i));
      }
    }
    for (const auto& [number, bits] : loaded_scalars_) s.s[number] = bits;
  }

  void end_group(Group& g) override {
    for (Wave& w : g.waves) waves_.erase(&w);
    lds_.erase(&g);
    last_ = nullptr;
  }

 private:
  static constexpr uint32_t kRows = 4;   // dwords of a result that are told apart

  WaveShadow& shadow(const Wave& w) {
    if (last_wave_ != &w || !last_) last_wave_ = &w, last_ = &waves_[&w];
    return *last_;
  }

  static bool undefined(const WaveShadow& s, const Ref& r) {
    for (uint32_t k = r.index; k < r.index + r.count; ++k)
      if (r.file == File::vgpr ? s.some[k] : s.s[k]) return true;
    return false;
  }

  // The lanes that get a value, with DPP's masks and missing sources.
  uint64_t written_lanes(const Wave& w, const Insn& i) const {
    if (i.dpp.ctrl == DppCtrl::none) return lanes_.written;
    uint64_t lanes = 0;
    for (uint64_t m = lanes_.written; m; m &= m - 1) {
      const int l = std::countr_zero(m);
      if ((i.dpp.row_mask >> (l >> 4) & 1) && (i.dpp.bank_mask >> (l >> 2 & 3) & 1) &&
          (dpp_lane(w, i, l) >= 0 || i.dpp.bound_ctrl || i.dpp.ctrl == DppCtrl::dpp8))
        lanes |= 1ull << l;
    }
    return lanes;
  }
  // The lane that src0 comes from; -1 where none is read.
  static int dpp_lane(const Wave& w, const Insn& i, int l) {
    if (i.dpp.ctrl == DppCtrl::none) return l;
    const int from = dpp_source(i.dpp, l, static_cast<int>(w.lanes));
    return from >= 0 && (i.dpp.fi || w.exec() >> from & 1) ? from : -1;
  }
  static bool is_src0(const Facts& f, const Ref& r) {
    return f.insn->row && r.slot != kImplicit && r.slot != kAccumulator && r.slot == (f.insn->row->slots && f.insn->row->slot[0].role & kWrite ? 1 : 0);
  }

  // Of a number, a part may be of no use; here less than a byte is defined.
  static bool mostly(uint32_t bits) { return std::popcount(bits) > 24; }
  static uint8_t bytes_with(uint32_t bits) {
    return static_cast<uint8_t>((bits & 0xff) != 0) | static_cast<uint8_t>((bits & 0xff00) != 0) << 1 |
           static_cast<uint8_t>((bits & 0xff0000) != 0) << 2 | static_cast<uint8_t>((bits >> 24) != 0) << 3;
  }
  static uint32_t spread_bits(uint8_t bytes) {
    return (bytes & 1 ? 0xffu : 0) | (bytes & 2 ? 0xff00u : 0) | (bytes & 4 ? 0xff0000u : 0) | (bytes & 8 ? 0xff000000u : 0);
  }

  uint8_t at(const Wave& w, WaveShadow& s, const Facts& f, const Ref& r, uint32_t dword, int lane) const {
    if (r.file == File::scalar) return bytes_with(s.s[r.index + dword]) & r.bytes;
    const int from = is_src0(f, r) ? dpp_lane(w, *f.insn, lane) : lane;
    return from < 0 ? 0 : s.row(r.index + dword)[from] & r.bytes;
  }

  // ---- what an instruction does with undefined bytes -----------------------------------------

  void pass_through(Wave& w, WaveShadow& s, const Insn& i, const Facts& f) {
    std::memset(out_, 0, sizeof out_);
    scalar_out_[0] = scalar_out_[1] = scc_out_ = 0;
    soft_ = false;
    for (int k = 0; k < f.reads; ++k)
      if (f.read[k].file == File::vgpr)
        for (uint32_t d = 0; d < f.read[k].count; ++d) soft_ |= s.some[f.read[k].index + d] && s.soft[f.read[k].index + d];
    const auto known = flows_.try_emplace(&i, Flow::use);
    if (known.second) known.first->second = flow_of(i);
    const Flow flow = known.first->second;
    if (f.is(kIsVmem | kIsDs) && flow != Flow::lanes) return addresses(w, s, i, f);
    if (f.is(kIsSalu) && (flow != Flow::use || exec_operation(i))) return scalars(w, s, i, f);
    if (flow == Flow::use || writes_exec(f)) return uses(w, s, i, f);
    if (f.is(kIsLaneRead)) {
      const int lane = std::countr_zero(lanes_.read);
      scalar_out_[0] = f.reads && f.read[0].file == File::vgpr ? spread_bits(s.row(f.read[0].index)[lane]) : 0;
      return selector(w, s, i, f);
    }
    if (f.is(kIsLaneWrite)) {
      const int lane = std::countr_zero(lanes_.written);
      for (int k = 0; k < f.reads; ++k)
        if (f.read[k].slot == 1) out_[0][lane] = at(w, s, f, f.read[k], 0, lane);
      return selector(w, s, i, f);
    }
    if (flow == Flow::lanes) return changed_lanes(w, s, f);
    if (flow == Flow::select) return selected(w, s, i, f);
    if (flow == Flow::wide) return wide_integers(w, s, i, f);
    for (uint32_t n = 0; n < kRows; ++n) {
      for (uint64_t m = lanes_.written; m; m &= m - 1) {
        const int l = std::countr_zero(m);
        uint8_t sources[4];
        int count = 0;
        for (int k = 0; k < f.reads && count < 4; ++k) {
          const Ref& r = f.read[k];
          if (r.slot == kImplicit) continue;
          uint8_t x = 0;
          // A register tuple that is as wide as the result moves dword by dword.
          const uint32_t wide = f.writes ? f.written[0].count : 1;
          if (r.count == wide && flow == Flow::copy) x = n < r.count ? at(w, s, f, r, n, l) : 0;
          else for (uint32_t d = 0; d < r.count; ++d) x = static_cast<uint8_t>(x | at(w, s, f, r, d, l));
          sources[count++] = x;
        }
        // A half that was picked lands in the half that is written.
        out_[n][l] = flow == Flow::bits ? combined(i, sources, count) : joined(sources, count);
      }
    }
  }

  static uint8_t joined(const uint8_t* x, int n) {
    uint8_t all = 0;
    for (int k = 0; k < n; ++k) all = static_cast<uint8_t>(all | x[k]);
    return all;
  }
  static bool writes_exec(const Facts& f) {
    for (int k = 0; k < f.writes; ++k)
      if (f.written[k].file == File::scalar && f.written[k].index >= kExec && f.written[k].index < kExec + 2) return true;
    return false;
  }

  // Arithmetic on a register of which no byte is defined. What came out of scratch is let through:
  // compilers load from their stack before they know whether the value is wanted.
  void uses(Wave& w, WaveShadow& s, const Insn& i, const Facts& f) {
    for (int k = 0; k < f.reads; ++k) {
      const Ref& r = f.read[k];
      for (uint32_t d = 0; d < r.count; ++d) {
        if (r.file == File::scalar) {
          // A mask or a flag with one bit undefined decides wrongly; of a number, part may be unused.
          const uint32_t bits = s.s[r.index + d];
          // Compilers compare ahead of knowing whether the answer is wanted: whoever asks SCC is told.
          if (mostly(bits) && f.is(kIsSalu) && f.writes == 1 && f.written[0].index == kScc) scc_out_ = ~0u;
          else if (mostly(bits) || (bits && (r.slot == kImplicit || f.is(kIsBranch)))) report_scalar(w, s, i, r.index + d);
          else if (bits) scalar_out_[0] = scalar_out_[1] = ~0u;
          continue;
        }
        if (!s.some[r.index + d]) continue;
        for (uint64_t m = lanes_.read; m; m &= m - 1) {
          const int l = std::countr_zero(m);
          const uint8_t bytes = at(w, s, f, r, d, l);
          if (bytes == r.bytes && !s.soft[r.index + d]) {
            report_vector(w, s, i, r.index + d, l, "is used");
            break;
          }
          for (uint32_t n = 0; bytes && n < kRows; ++n) out_[n][l] = static_cast<uint8_t>(out_[n][l] | spread_up(bytes));
        }
      }
    }
  }

  // An undefined upper half stays in the upper half of a sum, which compilers compute where they want
  // the lower half alone; it decides the carry.
  void wide_integers(Wave& w, WaveShadow& s, const Insn& i, const Facts& f) {
    const bool sum = is_wide_sum(i);
    for (int k = 0; k < f.reads; ++k) {
      const Ref& r = f.read[k];
      const bool scalar = r.file == File::scalar;
      if (sum && scalar && mostly(s.s[r.index])) {
        report_scalar(w, s, i, r.index);
        continue;
      }
      for (uint64_t m = lanes_.read; m; m &= m - 1) {
        const int l = std::countr_zero(m);
        const uint8_t low = at(w, s, f, r, 0, l), high = r.count > 1 ? at(w, s, f, r, 1, l) : uint8_t{0};
        if (sum && !scalar && low == kAll && !s.soft[r.index]) {
          report_vector(w, s, i, r.index, l, "is used");
          break;
        }
        const uint8_t bytes = combined_wide(i, r.slot, static_cast<uint8_t>(low | high << 4));
        out_[0][l] = static_cast<uint8_t>(out_[0][l] | (bytes & 15));
        out_[1][l] = static_cast<uint8_t>(out_[1][l] | bytes >> 4);
        if (bytes) scalar_out_[l / 32] |= 1u << (l % 32);
      }
    }
  }

  // The lane number of v_readlane and v_writelane.
  void selector(Wave& w, WaveShadow& s, const Insn& i, const Facts& f) {
    for (int k = 0; k < f.reads; ++k)
      if (f.read[k].slot == 2 && f.read[k].file == File::scalar && s.s[f.read[k].index]) report_scalar(w, s, i, f.read[k].index);
  }

  static bool exec_operation(const Insn& i) {
    const std::string_view n = mnemonic_of(i);
    return n.find("saveexec") != n.npos || n.find("wrexec") != n.npos;
  }

  // Copies and bit operations of the scalar unit, bit by bit: a defined 0 decides an `and`, a defined
  // 1 an `or`. EXEC must come out defined.
  void scalars(Wave& w, WaveShadow& s, const Insn& i, const Facts& f) {
    const std::string_view n = mnemonic_of(i);
    const auto has = [&](const char* part) { return n.find(part) != n.npos; };
    const bool selects = has("cselect") || has("cmov"), unknown = selects && s.s[kScc];
    for (int k = 0; k < f.reads && !selects; ++k)
      if (f.read[k].slot == kImplicit && s.s[f.read[k].index]) report_scalar(w, s, i, f.read[k].index);
    const bool exec_op = exec_operation(i), move = has("mov") || has("cselect");
    const bool is_and = has("and"), is_or = !is_and && !has("xor") && !has("xnor") && (has("_or") || has("nor"));
    const bool bitwise = is_and || is_or || has("xor") || has("xnor");
    const uint32_t dwords = has("64") && n.find("b64_b32") == n.npos ? 2 : 1;
    bool one = false;   // a bit of the result is defined and set
    uint32_t all = 0;
    for (uint32_t d = 0; d < dwords; ++d) {
      uint32_t x = read_scalar(w, i.op[1], static_cast<int>(d)), ux = bits_of(s, i.op[1], d), y = 0, uy = 0;
      if (exec_op) {
        y = w.s[kExec + d];
      } else if (i.operands > 2) {
        y = read_scalar(w, i.op[2], static_cast<int>(d));
        uy = bits_of(s, i.op[2], d);
      }
      if (has("andn1") || has("orn1") || has("not0")) x = ~x;
      if (has("andn2") || has("orn2") || has("not1")) y = ~y;
      uint32_t u = ux | uy, r = 0;
      if (is_and) u &= ~((~x & ~ux) | (~y & ~uy)), r = has("nand") ? ~(x & y) : x & y;
      else if (is_or) u &= ~((x & ~ux) | (y & ~uy)), r = has("nor") ? ~(x | y) : x | y;
      else if (bitwise) r = x ^ y;
      else if (unknown) u = has("cselect") && x == y && !ux && !uy ? 0 : ~0u;
      else if (has("cselect")) u = w.scc ? ux : uy;
      else if (has("cmov")) u = w.scc ? ux : bits_of(s, i.op[0], d);
      else if (!move && !has("s_not")) u = u ? ~0u : 0;
      one |= bitwise && (r & ~u) != 0;
      all |= u;
      scalar_out_[d] = u;
    }
    if (has("lshl_") || has("lshr_") || has("ashr_") || has("bfe_")) {
      shifted(w, s, i, dwords);
      all = scalar_out_[0] | scalar_out_[1];
    }
    if (!move && all && !one) scc_out_ = ~0u;
    if (!exec_op && !writes_exec(f)) return;
    for (uint32_t d = 0; d < dwords; ++d)
      if (scalar_out_[d]) {
        for (int k = 0; k < f.reads; ++k)
          if (f.read[k].file == File::scalar && f.read[k].slot != kImplicit && s.s[f.read[k].index + std::min<uint32_t>(d, f.read[k].count - 1u)])
            report_scalar(w, s, i, f.read[k].index + std::min<uint32_t>(d, f.read[k].count - 1u));
        scalar_out_[d] = 0;
      }
    if (!has("wrexec")) scalar_out_[0] = scalar_out_[1] = 0;   // D is the old EXEC
    scc_out_ = 0;
  }
  // What is undefined moves with the bits; an undefined sign comes in as often as it is shifted.
  void shifted(const Wave& w, const WaveShadow& s, const Insn& i, uint32_t dwords) {
    const std::string_view n = mnemonic_of(i);
    const bool left = n.find("lshl") != n.npos, field = n.find("bfe") != n.npos;
    const bool is_signed = n.find("_i32") != n.npos || n.find("_i64") != n.npos;
    const uint32_t width = 32 * dwords, how = read_scalar(w, i.op[2], 0);
    uint64_t u = bits_of(s, i.op[1], 0);
    if (dwords == 2) u |= static_cast<uint64_t>(bits_of(s, i.op[1], 1)) << 32;
    if (bits_of(s, i.op[2], 0)) {
      u = ~0ull;
    } else if (left) {
      u <<= how & (width - 1);
    } else {
      // A field is `count` bits from `from`; a plain shift takes all that is there.
      const uint32_t from = how & (width - 1), count = field ? std::min(how >> 16 & 127, width - from) : width - from;
      const uint64_t mask = count >= 64 ? ~0ull : (1ull << count) - 1;
      u = u >> from & mask;
      if (is_signed && count && u >> (count - 1) & 1) u |= ~mask;
    }
    scalar_out_[0] = static_cast<uint32_t>(u);
    scalar_out_[1] = dwords == 2 ? static_cast<uint32_t>(u >> 32) : 0;
  }
  static uint32_t bits_of(const WaveShadow& s, const Operand& o, uint32_t dword) {
    return o.kind == Kind::sgpr && o.index != kNull ? s.s[o.index + dword] : 0;
  }

  // Which lane a value comes from is not followed: it counts as undefined when every lane's is.
  void changed_lanes(Wave& w, WaveShadow& s, const Facts& f) {
    for (int k = 0; k < f.reads; ++k) {
      const Ref& r = f.read[k];
      if (r.file != File::vgpr) continue;
      uint8_t every = kAll;
      for (uint64_t m = lanes_.read; m; m &= m - 1) every &= s.row(r.index)[std::countr_zero(m)];
      if (f.is(kIsDs) && f.address_slots >> r.slot & 1) {
        if (every == kAll && lanes_.read) report_vector(w, s, *f.insn, r.index, std::countr_zero(lanes_.read), "is used as an address");
        continue;
      }
      for (uint64_t m = lanes_.written; m; m &= m - 1) out_[0][std::countr_zero(m)] = every;
    }
  }

  void selected(Wave& w, WaveShadow& s, const Insn& i, const Facts& f) {
    const Ref* mask = nullptr;
    for (int k = 0; k < f.reads; ++k)
      if (f.read[k].file == File::scalar && (f.read[k].slot == kImplicit || (f.read[k].slot < kMaxSlots && i.row->slot[f.read[k].slot].type == Type::mask)))
        mask = &f.read[k];
    if (!mask) return;
    for (uint32_t d = 0; d < mask->count; ++d)
      if (s.s[mask->index + d] & static_cast<uint32_t>(lanes_.written >> (32 * d))) return report_scalar(w, s, i, mask->index + d);
    const uint64_t bits = mask->count == 2 ? w.pair(mask->index) : w.s[mask->index];
    for (int k = 0; k < f.reads; ++k) {
      const Ref& r = f.read[k];
      if (&r == mask) continue;
      for (uint64_t m = lanes_.written; m; m &= m - 1) {
        const int l = std::countr_zero(m);
        if ((bits >> l & 1) == (r.slot == 2)) out_[0][l] = at(w, s, f, r, 0, l);
      }
    }
  }

  // ---- memory --------------------------------------------------------------------------------

  void addresses(Wave& w, WaveShadow& s, const Insn& i, const Facts& f) {
    for (int k = 0; k < f.reads; ++k) {
      const Ref& r = f.read[k];
      const bool address = r.slot == kImplicit || f.address_slots >> r.slot & 1;
      if (!address && !f.is(kIsAtomic)) continue;
      for (uint32_t d = 0; d < r.count; ++d) {
        if (r.file == File::scalar) {
          if (mostly(s.s[r.index + d])) report_scalar(w, s, i, r.index + d);
          continue;
        }
        for (uint64_t m = lanes_.read; m; m &= m - 1) {
          const int l = std::countr_zero(m);
          if (!(s.row(r.index + d)[l] & r.bytes)) continue;
          report_vector(w, s, i, r.index + d, l, address ? "is used as an address" : "is used");
          break;
        }
      }
    }
  }

  uint8_t* bytes_of(const Wave& w, WaveShadow& s, const MemoryAccess& a) {
    if (a.space == Space::lds) return &lds_[w.group][a.address];
    if (a.space == Space::scratch) return &s.scratch[static_cast<size_t>(a.lane) * w.scratch_bytes + a.address];
    return nullptr;
  }

  // The allocation that an access to global memory is in, if it is known what is defined there.
  const Region* tracked(const MemoryAccess& a) {
    if (a.space != Space::global) return nullptr;
    if (!region_ || !region_->contains(a.address, a.bytes)) region_ = Memory::find(*launch_.regions, a.address);
    return region_ && region_->defined && region_->contains(a.address, a.bytes) ? region_ : nullptr;
  }
  // A bit for each byte of the access that nothing has written.
  uint64_t undefined_global(const MemoryAccess& a) {
    const Region* region = tracked(a);
    return region ? region->defined->undefined(a.address - region->base, a.bytes) : 0;
  }
  void define_global(const MemoryAccess& a) {
    if (const Region* region = tracked(a)) region->defined->set(a.address - region->base, a.bytes, true);
  }

  void memory(Wave& w, WaveShadow& s, const Insn& i, const Facts& f, Accesses accesses) {
    if (f.is(kIsSmem)) return scalar_memory(f, accesses);
    if (all_defined(w, s, i, f, accesses)) return;
    std::memset(length_, 0, sizeof length_);
    const bool stores = f.is(kIsStore);
    if (stores) store_stream(w, s, f);
    uint8_t used[64] = {};
    for (const MemoryAccess& a : accesses) {
      uint8_t* bytes = bytes_of(w, s, a);
      uint8_t* stream = stream_[a.lane];
      uint8_t& n = length_[a.lane];
      if (f.is(kIsAtomic)) {
        if (bytes ? std::memchr(bytes, 1, a.bytes) != nullptr : undefined_global(a) != 0) report_memory(w, i, a, "is changed");
        if (bytes) std::memset(bytes, 0, a.bytes);
        else define_global(a);
      } else if (a.write && !stores) {
        if (bytes) std::memset(bytes, 0, a.bytes);   // LDS DMA
      } else if (a.write) {
        const Region* region = tracked(a);
        if (region) region->defined->set(a.address - region->base, a.bytes, true);
        bool told = false;
        for (uint32_t b = 0; b < a.bytes; ++b, ++used[a.lane]) {
          const bool bad = used[a.lane] < n && stream[used[a.lane]];
          if (bytes) bytes[b] = bad;
          else if (bad && region) region->defined->set(a.address - region->base + b, 1, false);
          if (bad && !bytes && !told) told = true, report_store(w, s, i, f, a);
        }
      } else {
        const uint64_t unknown = bytes ? 0 : undefined_global(a);
        for (uint32_t b = 0; b < a.bytes && n < sizeof stream_[0]; ++b) stream[n++] = bytes ? bytes[b] : unknown >> b & 1;
      }
    }
    if (!stores && !f.is(kIsLdsDma) && f.writes) loaded_registers(w, s, i, f);
  }

  // The usual case: defined registers are stored, or what is loaded is defined. True when that was all.
  bool all_defined(Wave& w, WaveShadow& s, const Insn& i, const Facts& f, Accesses accesses) {
    if (f.is(kIsAtomic | kIsLdsDma)) return false;
    if (f.is(kIsStore)) {
      for (int k = 0; k < f.reads; ++k)
        if (f.read[k].file == File::vgpr && undefined(s, f.read[k])) return false;
      for (const MemoryAccess& a : accesses) {
        if (uint8_t* bytes = bytes_of(w, s, a)) std::memset(bytes, 0, a.bytes);
        else define_global(a);
      }
      return true;
    }
    for (const MemoryAccess& a : accesses) {
      const uint8_t* bytes = bytes_of(w, s, a);
      if (a.write || (bytes ? std::memchr(bytes, 1, a.bytes) != nullptr : undefined_global(a) != 0)) return false;
    }
    if (!f.writes) return true;
    const Ref& r = f.written[0];
    for (uint32_t n = 0; n < r.count; ++n) define(w, s, i, r.index + n, nullptr, r.bytes, lanes_.written);
    return true;
  }

  // Scalar loads give whole dwords, in order; scalar stores and atomics define what they reach.
  void scalar_memory(const Facts& f, Accesses accesses) {
    if (!f.writes || f.is(kIsStore | kIsAtomic)) {
      for (const MemoryAccess& a : accesses)
        if (a.write) define_global(a);
      return;
    }
    const Ref& r = f.written[0];
    uint32_t dword = 0;
    for (const MemoryAccess& a : accesses) {
      const uint64_t unknown = undefined_global(a);
      for (uint32_t b = 0; b < a.bytes; b += 4, ++dword) {
        const uint32_t bits = spread_bits(static_cast<uint8_t>(unknown >> b & 15));
        if (!bits || dword >= r.count) continue;
        loaded_scalars_.push_back({r.index + dword, bits});
      }
    }
  }

  // The bytes that a store takes from its data registers, lane by lane.
  void store_stream(const Wave&, WaveShadow& s, const Facts& f) {
    for (int k = 0; k < f.reads; ++k) {
      const Ref& r = f.read[k];
      if (r.file != File::vgpr || r.slot == kImplicit || f.address_slots >> r.slot & 1) continue;
      for (uint32_t d = 0; d < r.count; ++d)
        for (uint64_t m = lanes_.read; m; m &= m - 1) {
          const int l = std::countr_zero(m);
          const uint8_t bad = s.row(r.index + d)[l];
          for (int b = 0; b < 4; ++b)
            if (r.bytes >> b & 1 && length_[l] < sizeof stream_[0]) stream_[l][length_[l]++] = bad >> b & 1;
        }
    }
  }

  void loaded_registers(Wave& w, WaveShadow& s, const Insn& i, const Facts& f) {
    const Ref& r = f.written[0];
    soft_ = f.insn->cls == Class::scratch || f.is(kIsFlat);
    const bool transposed = std::string_view(i.text).find("_tr_") != std::string_view::npos;
    uint8_t bits[64] = {};
    for (uint32_t n = 0; n < r.count; ++n) {
      for (uint64_t m = lanes_.written; m; m &= m - 1) {
        const int l = std::countr_zero(m);
        const uint8_t* stream = stream_[l];
        uint8_t x = 0;
        if (f.is(kIsAtomic) || 4u * r.count != length_[l]) {
          // Less than a dword: what is read decides for the register, its extension included. Less
          // than the tuple: a buffer's range left something out, which reads as 0.
          const bool whole = length_[l] < 4 && r.count == 1;
          if (whole && std::memchr(stream, 1, length_[l])) x = kAll;
        } else {
          for (int b = 0; b < 4; ++b) x = static_cast<uint8_t>(x | stream[4 * n + static_cast<uint32_t>(b)] << b);
        }
        bits[l] = x;
      }
      if (transposed) {   // sixteen lanes share what they read
        for (int g = 0; g < 64; g += 16) {
          uint8_t any = 0;
          for (int l = g; l < g + 16; ++l) any |= bits[l];
          std::fill_n(bits + g, 16, any);
        }
      }
      define(w, s, i, r.index + n, bits, r.bytes, lanes_.written);
    }
  }

  // ---- registers and reports -----------------------------------------------------------------

  void define(const Wave& w, WaveShadow& s, const Insn& i, uint32_t row, const uint8_t* bits, uint8_t bytes, uint64_t lanes) {
    bool any = false;
    for (uint64_t m = bits ? lanes : 0; m; m &= m - 1) any |= bits[std::countr_zero(m)] & bytes;
    if (!any && !s.some[row]) return;
    uint8_t* d = s.row(row);
    for (uint64_t m = lanes; m; m &= m - 1) {
      const int l = std::countr_zero(m);
      d[l] = static_cast<uint8_t>((d[l] & ~bytes) | (bits ? bits[l] & bytes : 0));
    }
    if (any) {
      s.origin[row] = &i;
      s.soft[row] = soft_;
    }
    s.some[row] = std::any_of(d, d + w.lanes, [](uint8_t x) { return x != 0; });
  }

  Finding* report(const Wave& w, const Insn& i, const Insn* origin, const char* rule, Severity severity = Severity::error) {
    return watch_.findings.add(w, i, origin, "init", rule, severity, Certainty::isa_and_compiler);
  }
  static std::string history(const Insn* origin) {
    return origin ? ", but what the first instruction put there was not defined" : ", but nothing has written it";
  }

  void report_scalar(const Wave& w, WaveShadow& s, const Insn& i, uint32_t number) {
    const Insn* origin = s.s_origin[number];
    if (Finding* f = report(w, i, origin, "E.3 scalar")) {
      f->reg = sgpr_name(launch_, number);
      f->text = f->reg + " is used" + history(origin);
      f->mend = "write " + f->reg + " before this line, or read the register that was meant";
    }
  }
  void report_vector(const Wave& w, WaveShadow& s, const Insn& i, uint32_t row, int lane, const char* how) {
    const Insn* origin = s.origin[row];
    if (Finding* f = report(w, i, origin, "E.3 vector")) {
      f->reg = vgpr_name(launch_, row);
      f->lane = lane;
      f->text = f->reg + " " + how + " in lane " + std::to_string(lane) + history(origin);
      f->mend = "write " + f->reg + " in every active lane before this line, or read the register that was meant";
    }
  }
  void report_memory(const Wave& w, const Insn& i, const MemoryAccess& a, const char* how) {
    if (Finding* f = report(w, i, nullptr, "E.3 memory")) {
      f->lane = a.lane;
      f->has_address = true;
      f->address = a.address;
      f->text = a.space == Space::global ? "memory" : std::string(a.space == Space::lds ? "LDS" : "scratch") + " byte " + std::to_string(a.address);
      f->text += std::string(" ") + how + ", but nothing has written it";
      if (a.space == Space::global) f->text += ": " + Memory::describe(*launch_.regions, a.address);
      f->mend = "store to it before this line";
    }
  }
  // A compiler stores the padding of a structure too.
  void report_store(const Wave& w, WaveShadow& s, const Insn& i, const Facts& f, const MemoryAccess& a) {
    for (int k = 0; k < f.reads; ++k) {
      const Ref& r = f.read[k];
      if (r.file != File::vgpr || r.slot == kImplicit || f.address_slots >> r.slot & 1) continue;
      for (uint32_t d = 0; d < r.count; ++d) {
        if (!(s.row(r.index + d)[a.lane] & r.bytes)) continue;
        const Insn* origin = s.origin[r.index + d];
        Finding* found = report(w, i, origin, "E.3 store", Severity::warning);
        if (!found) return;
        found->reg = vgpr_name(launch_, r.index + d);
        found->lane = a.lane;
        found->has_address = true;
        found->address = a.address;
        found->text = found->reg + " is stored to memory" + history(origin);
        found->mend = "write " + found->reg + " before this line, or do not store it";
        return;
      }
    }
  }

  Watch& watch_;
  LaunchState& launch_;
  std::unordered_map<const Wave*, WaveShadow> waves_;
  std::unordered_map<const Group*, std::vector<uint8_t>> lds_;
  std::unordered_map<const Insn*, Flow> flows_;
  const Region* region_ = nullptr;   // of the last access to global memory
  std::vector<std::pair<uint32_t, uint32_t>> loaded_scalars_;   // number, undefined bits
  const Wave* last_wave_ = nullptr;
  WaveShadow* last_ = nullptr;
  // Of the instruction between `before` and `after`.
  bool active_ = false;
  Facts moved_;
  const Facts* resolved_ = nullptr;
  LaneSets lanes_;
  uint8_t out_[kRows][64];
  uint32_t scalar_out_[2] = {}, scc_out_ = 0;
  bool soft_ = false;
  uint8_t stream_[64][32];
  uint8_t length_[64];
};

}  // namespace

std::unique_ptr<Observer> make_init(Watch& watch, LaunchState& launch) {
  return std::make_unique<Init>(watch, launch);
}

}  // namespace netra
