#include "counting.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "../launch.h"
#include "../occupancy.h"
#include "lds_banks.h"
#include "observer.h"

namespace netra {
namespace {

constexpr unsigned kLineBits = 7;   // lines of 128 bytes

// A set of line numbers: a bitmap for each 4 MiB of memory that is touched.
class LineSet {
 public:
  void insert(uint64_t line) {
    const uint64_t page = line / kPage;
    if (!bits_ || page != page_) {
      bits_ = &pages_[page];
      if (bits_->empty()) bits_->resize(kPage / 64);
      page_ = page;
    }
    uint64_t& word = (*bits_)[line % kPage / 64];
    const uint64_t bit = 1ull << line % 64;
    count_ += !(word & bit);
    word |= bit;
  }
  uint64_t count() const { return count_; }

 private:
  static constexpr uint64_t kPage = 1 << 15;
  std::unordered_map<uint64_t, std::vector<uint64_t>> pages_;
  std::vector<uint64_t>* bits_ = nullptr;   // of page_, the page used last
  uint64_t page_ = 0, count_ = 0;
};

// Traffic in one direction.
struct Flow {
  uint64_t bytes = 0;         // of all lanes, whether or not they ask for the same
  uint64_t requests = 0;      // lines, counted anew for each instruction
  LineSet lines;              // ... and once for the launch
};

enum Path { kVector, kScalar, kLds, kScratch, kPaths };
constexpr const char* kPathNames[] = {"global", "scalar", "lds", "scratch"};

class Counting : public Observer {
 public:
  Counting(Watch& watch, LaunchState& launch) : watch_(watch), launch_(launch), banks_(launch) {}

  void after(Wave&, const Insn& i, const Facts& f, Accesses accesses) override {
    passes_ += f.passes;
    arrivals_ += f.is(kIsBarrier);
    if (accesses.empty()) return;
    for (const bool write : {false, true}) move(accesses, f.is(kIsSmem), write);
    if (f.is(kIsDs)) {
      const BankCount n = banks_.count(accesses);
      BankCount& total = banks_.known(i) ? known_ : assumed_;
      total.phases += n.phases;
      total.conflicts += n.conflicts;
    }
  }

  void barrier_released(Group&) override { ++barriers_; }

  void finish(LaunchState&) override {
    auto& out = watch_.counters;
    for (int p = 0; p < kPaths; ++p)
      for (const bool write : {false, true}) {
        const Flow& flow = flows_[p][write];
        const std::string name = std::string("memory.") + kPathNames[p] + (write ? ".write" : ".read");
        out[name + "_bytes"] = flow.bytes;
        if (p != kVector && p != kScalar) continue;
        out[name + "_lines"] = flow.lines.count();
        out[name + "_line_requests"] = flow.requests;
      }
    out["lds_model.phases"] = known_.phases;
    out["lds_model.conflicts"] = known_.conflicts;
    out["lds_model.assumed_phases"] = assumed_.phases;
    out["lds_model.assumed_conflicts"] = assumed_.conflicts;
    out["mfma.passes"] = passes_;
    out["barriers"] = barriers_;
    out["barriers.arrivals"] = arrivals_;
    occupied(&out);
  }

 private:
  void move(Accesses accesses, bool scalar, bool write) {
    touched_.clear();
    Flow* flow = nullptr;
    for (const MemoryAccess& a : accesses) {
      if (!(write ? a.write : a.read)) continue;
      const Path path = a.space == Space::lds       ? kLds
                        : a.space == Space::scratch ? kScratch
                        : scalar                    ? kScalar
                                                    : kVector;
      flows_[path][write].bytes += a.bytes;
      if (path != kVector && path != kScalar) continue;
      flow = &flows_[path][write];   // an instruction uses one of the two
      for (uint64_t l = a.address >> kLineBits; l <= (a.address + a.bytes - 1) >> kLineBits; ++l)
        if (touched_.empty() || touched_.back() != l) touched_.push_back(l);
    }
    if (!flow) return;
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    flow->requests += touched_.size();
    for (const uint64_t line : touched_) flow->lines.insert(line);
  }

  void occupied(std::map<std::string, uint64_t>* out) const {
    const Launch& l = launch_.launch;
    const Descriptor& d = launch_.kernel->descriptor;
    const uint32_t threads = l.block[0] * l.block[1] * l.block[2], lanes = d.wave32 ? 32 : 64;
    const Occupancy o = occupancy(*launch_.kernel, *launch_.target, d.lds_bytes + l.dynamic_lds,
                                  (threads + lanes - 1) / lanes);
    (*out)["occupancy.waves_per_simd"] = o.waves;
    (*out)["occupancy.limit.slots"] = launch_.target->max_waves_per_simd;
    (*out)["occupancy.limit.vgprs"] = o.by_vgprs;
    if (o.by_sgprs) (*out)["occupancy.limit.sgprs"] = o.by_sgprs;
    if (o.by_lds) (*out)["occupancy.limit.lds"] = o.by_lds;
  }

  Watch& watch_;
  LaunchState& launch_;
  BankModel banks_;
  Flow flows_[kPaths][2];     // read, written
  BankCount known_, assumed_;
  uint64_t passes_ = 0, barriers_ = 0, arrivals_ = 0;
  std::vector<uint64_t> touched_;
};

}  // namespace

std::unique_ptr<Observer> make_counting(Watch& watch, LaunchState& launch) {
  return std::make_unique<Counting>(watch, launch);
}

}  // namespace netra
