#include "bounds.h"

#include <cstdio>
#include <string>

#include "../launch.h"
#include "observer.h"

namespace netra {
namespace {

std::string hex(uint64_t x) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(x));
  return text;
}

class Bounds : public Observer {
 public:
  explicit Bounds(Watch& watch) : watch_(watch) {}

  void after(Wave& w, const Insn& i, const Facts& f, Accesses accesses) override {
    for (const Silent& s : watch_.silent) silent(w, i, f, s);
    for (const MemoryAccess& a : accesses) {
      // Whole dwords and halves that lie across their natural places.
      const uint32_t unit = a.bytes >= 4 ? 4 : a.bytes;
      if (unit > 1 && a.address % unit) return crooked(w, i, a, unit);
    }
  }

 private:
  Finding* add(const Wave& w, const Insn& i, const char* rule, Severity severity, Certainty certainty, int lane, uint64_t address) {
    Finding* f = watch_.findings.add(w, i, nullptr, "bounds", rule, severity, certainty);
    if (!f) return nullptr;
    f->lane = lane;
    f->has_address = true;
    f->address = address;
    return f;
  }

  void silent(const Wave& w, const Insn& i, const Facts& facts, const Silent& s) {
    const std::string bytes = std::to_string(s.bytes) + (s.bytes == 1 ? " byte" : " bytes");
    switch (s.what) {
      case Silent::range: {
        const bool scalar = facts.is(kIsSmem);
        Finding* f = add(w, i, "E range", Severity::warning, Certainty::isa_only, scalar ? -1 : s.lane, s.address);
        if (!f) return;
        f->text = bytes + " lie outside the range of the buffer descriptor: " +
                  (facts.is(kIsStore | kIsAtomic) ? "the store is dropped in silence" : "0 is read in silence");
        f->mend = "if that is not meant as a mask: check num_records, the stride and the offset of this lane";
        return;
      }
      case Silent::wrapped: {
        Finding* f = add(w, i, "E wrap", Severity::error, Certainty::isa_only, s.lane, s.address);
        if (!f) return;
        f->text = "the offset register and the instruction's offset add up to more than 32 bits, and wrap to " + hex(s.address);
        f->mend = "keep the offset below 2^32 less the instruction's offset, or move the base";
        return;
      }
      case Silent::low_bits: {
        Finding* f = add(w, i, "E align", Severity::error, Certainty::isa_only, -1, s.address);
        if (!f) return;
        f->text = "a scalar load drops the two low bits of its address " + hex(s.address);
        f->mend = "align base and offset to 4 bytes, or use a vector load";
        return;
      }
    }
  }

  void crooked(const Wave& w, const Insn& i, const MemoryAccess& a, uint32_t unit) {
    Finding* f = add(w, i, "E align", Severity::warning, Certainty::isa_only, a.lane, a.address);
    if (!f) return;
    f->text = std::to_string(a.bytes) + " bytes at an address that is no multiple of " + std::to_string(unit) +
              ": slow, and a fault where unaligned access is switched off";
    f->mend = "align the address to " + std::to_string(unit) + " bytes";
  }

  Watch& watch_;
};

}  // namespace

std::unique_ptr<Observer> make_bounds(Watch& watch) { return std::make_unique<Bounds>(watch); }

}  // namespace netra
