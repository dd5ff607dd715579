#include "store_lanes.h"

#include <algorithm>
#include <string>

#include "../launch.h"
#include "lanes_touched.h"
#include "observer.h"

namespace netra {
namespace {

// Two lanes of one instruction that store different bytes to the same address: no manual says which
// of them stays. Equal bytes are a common and harmless thing.
class StoreLanes : public Observer {
 public:
  explicit StoreLanes(Watch& watch) : watch_(watch) {}

  void after(Wave& w, const Insn& i, const Facts& facts, Accesses accesses) override {
    if (!facts.is(kIsStore) || facts.is(kIsAtomic | kIsLdsDma) || accesses.size() < 2) return;
    bool apart = true;   // the usual case: addresses rise with the lanes
    for (size_t k = 1; k < accesses.size() && apart; ++k)
      apart = accesses[k - 1].address + accesses[k - 1].bytes <= accesses[k].address;
    if (!apart) compare(w, i, facts, accesses);
  }

 private:
  struct Piece {
    const MemoryAccess* access;
    uint32_t start;   // of its bytes among those that the lane stores
  };

  void compare(Wave& w, const Insn& i, const Facts& facts, Accesses accesses) {
    const Facts& f = resolve(w, facts, &moved_);
    stored_bytes(w, f);
    uint32_t used[64] = {};
    pieces_.clear();
    for (const MemoryAccess& a : accesses) {
      if (!a.write || a.read) continue;
      pieces_.push_back({&a, used[a.lane]});
      used[a.lane] += a.bytes;
    }
    std::stable_sort(pieces_.begin(), pieces_.end(), [](const Piece& x, const Piece& y) {
      if (x.access->space != y.access->space) return x.access->space < y.access->space;
      if (x.access->space == Space::scratch && x.access->lane != y.access->lane) return x.access->lane < y.access->lane;
      return x.access->address < y.access->address;
    });
    for (size_t k = 1; k < pieces_.size(); ++k) {
      const Piece &x = pieces_[k - 1], &y = pieces_[k];
      const MemoryAccess &a = *x.access, &b = *y.access;
      if (a.space != b.space || a.space == Space::scratch || a.lane == b.lane || b.address >= a.address + a.bytes) continue;
      const uint64_t end = std::min(a.address + a.bytes, b.address + b.bytes);
      for (uint64_t at = b.address; at < end; ++at) {
        const uint8_t here = byte(a.lane, x.start + static_cast<uint32_t>(at - a.address));
        if (here != byte(b.lane, y.start + static_cast<uint32_t>(at - b.address))) return report(w, i, a, b, at);
      }
    }
  }

  uint8_t byte(uint32_t lane, uint32_t at) const { return at < sizeof bytes_[0] ? bytes_[lane][at] : 0; }

  // What each lane stores, first byte to last.
  void stored_bytes(Wave& w, const Facts& f) {
    std::fill(std::begin(length_), std::end(length_), uint8_t{0});
    const uint64_t lanes = lanes_touched(w, f).read;
    for (int k = 0; k < f.reads; ++k) {
      const Ref& r = f.read[k];
      if (r.file != File::vgpr || r.slot == kImplicit || f.address_slots >> r.slot & 1) continue;
      for (uint32_t d = 0; d < r.count; ++d)
        for (uint64_t m = lanes; m; m &= m - 1) {
          const int l = std::countr_zero(m);
          for (int b = 0; b < 4; ++b)
            if (r.bytes >> b & 1 && length_[l] < sizeof bytes_[0])
              bytes_[l][length_[l]++] = static_cast<uint8_t>(w.row(r.index + d)[l] >> (8 * b));
        }
    }
  }

  void report(const Wave& w, const Insn& i, const MemoryAccess& a, const MemoryAccess& b, uint64_t at) {
    Finding* f = watch_.findings.add(w, i, nullptr, "race", "E lanes", Severity::error, Certainty::inferred);
    if (!f) return;
    const int low = std::min(a.lane, b.lane), high = std::max(a.lane, b.lane);
    f->lane = high;
    f->has_address = true;
    f->address = at;
    f->text = "lanes " + std::to_string(low) + " and " + std::to_string(high) +
              " store different bytes to the same " + (a.space == Space::lds ? "LDS " : "") +
              "address: which of them stays is not defined";
    f->mend = "let one of these lanes store, by EXEC, or give each an address of its own";
  }

  Watch& watch_;
  Facts moved_;
  std::vector<Piece> pieces_;
  uint8_t bytes_[64][32];
  uint8_t length_[64];
};

}  // namespace

std::unique_ptr<Observer> make_store_lanes(Watch& watch) {
  return std::make_unique<StoreLanes>(watch);
}

}  // namespace netra
