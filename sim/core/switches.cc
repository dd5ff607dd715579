#include "switches.h"

#include <cstdio>
#include <cstdlib>
#include <string>

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

void apply(Switches* s, const std::string& item) {
  const size_t eq = item.find('=');
  const std::string name = item.substr(0, eq), value = eq == std::string::npos ? "" : item.substr(eq + 1);
  for (const Row& r : kRows) {
    if (name != r.name) continue;
    if (value == r.on || value == r.off) {
      s->*r.field = value == r.on;
      return;
    }
    std::fprintf(stderr, "NETRA_SIM_SWITCHES: %s is %s or %s, not '%s'\n", r.name, r.off, r.on, value.c_str());
    return;
  }
  std::fprintf(stderr, "NETRA_SIM_SWITCHES: no switch is called '%s'; there are:", name.c_str());
  for (const Row& r : kRows) std::fprintf(stderr, " %s=%s|%s", r.name, r.off, r.on);
  std::fputc('\n', stderr);
}

Switches from_environment() {
  Switches s;
  const char* text = std::getenv("NETRA_SIM_SWITCHES");
  std::string rest = text ? text : "";
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    if (comma != 0) apply(&s, rest.substr(0, comma));
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  return s;
}

}  // namespace

const Switches& switches() {
  static const Switches s = from_environment();
  return s;
}

}  // namespace netra
