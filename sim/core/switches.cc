#include "switches.h"

#include <cstdlib>

namespace netra {
namespace {

struct Row {
  const char* name;
  const char* off;            // the default
  const char* on;
  bool Switches::*field;
};
constexpr Row kRows[] = {
    {"d16_vmem", "zero", "preserve", &Switches::d16_vmem_preserve},
    {"l2_add_f32", "preserve", "flush", &Switches::l2_add_f32_flush},
    {"ds_append", "offset", "m0", &Switches::ds_append_m0},
    {"minimum3_dx10", "nan", "zero", &Switches::minimum3_dx10_zero},
    {"dpp_inactive", "keep", "zero", &Switches::dpp_inactive_zero},
    {"fma_mix", "twice", "once", &Switches::fma_mix_once},
};

struct Parsed {
  Switches switches;
  std::string error;
};

void apply(Parsed* p, const std::string& item) {
  const size_t eq = item.find('=');
  const std::string name = item.substr(0, eq), value = eq == std::string::npos ? "" : item.substr(eq + 1);
  for (const Row& r : kRows) {
    if (name != r.name) continue;
    if (value == r.on || value == r.off) {
      p->switches.*r.field = value == r.on;
      return;
    }
    p->error = std::string("NETRA_SIM_SWITCHES: ") + r.name + " is " + r.off + " or " + r.on + ", not '" + value + "'";
    return;
  }
  p->error = "NETRA_SIM_SWITCHES: no switch is called '" + name + "'; there are:";
  for (const Row& r : kRows) p->error += std::string(" ") + r.name + "=" + r.off + "|" + r.on;
}

Parsed from_environment() {
  Parsed p;
  const char* text = std::getenv("NETRA_SIM_SWITCHES");
  std::string rest = text ? text : "";
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    if (comma != 0) apply(&p, rest.substr(0, comma));
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return p;
}

const Parsed& parsed() {
  static const Parsed p = from_environment();
  return p;
}

}  // namespace

const Switches& switches() { return parsed().switches; }
const std::string& switches_error() { return parsed().error; }

}  // namespace netra
