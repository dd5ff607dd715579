#include "trace.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <unordered_map>

#include "../launch.h"
#include "observer.h"

namespace netra {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

// A register or a tuple as the disassembler prints it: v7, s[4:7], a[0:3].
struct Register {
  char prefix = 0;
  uint32_t first = 0, last = 0;
  bool tuple = false;
  size_t length = 0;          // characters; 0: there is none here
};

Register read_register(const std::string& text, size_t at) {
  Register r;
  const char* const end = text.data() + text.size();
  const char* p = text.data() + at;
  if ((*p != 'v' && *p != 's' && *p != 'a') || (at && in_word(text[at - 1]))) return r;
  r.prefix = *p++;
  r.tuple = p < end && *p == '[';
  if (r.tuple) ++p;
  auto number = std::from_chars(p, end, r.first);
  if (number.ec != std::errc{}) return r;
  p = number.ptr;
  r.last = r.first;
  if (r.tuple) {
    if (p < end && *p == ':') {
      number = std::from_chars(p + 1, end, r.last);
      if (number.ec != std::errc{} || r.last < r.first) return r;
      p = number.ptr;
    }
    if (p == end || *p != ']') return r;
    ++p;
  }
  r.length = static_cast<size_t>(p - (text.data() + at));
  return r;
}

// The instruction with the names of the register map in place of numbers: v[vAcc+3], s[sOut:sOut+1].
std::string with_names(const LaunchState& launch, const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Register r = read_register(text, at);
    const std::string name = r.length ? map_name(launch, r.prefix, r.first) : "";
    if (name.empty()) {
      out.append(text, at, std::max<size_t>(r.length, 1));
      at += std::max<size_t>(r.length, 1);
      continue;
    }
    out += r.prefix;
    out += '[' + name;
    if (r.last != r.first) out += ':' + map_name(launch, r.prefix, r.first, r.last - r.first);
    out += ']';
    at += r.length;
  }
  return out;
}

class Trace : public Observer {
 public:
  Trace(Watch& watch, LaunchState& launch) : watch_(watch), launch_(launch) {}

  // Before, so that the last line is the instruction that faults.
  void before(Wave& w, const Insn& i, const Facts&) override {
    if (++seen_ > launch_.options.trace_limit) return;
    const uint32_t* id = w.group->id;
    text_ += "workgroup " + std::to_string(id[0]) + ',' + std::to_string(id[1]) + ',' +
             std::to_string(id[2]) + " wave " + std::to_string(w.index) + ' ' + told(i) + '\n';
  }

  void finish(LaunchState&) override {
    const uint64_t limit = launch_.options.trace_limit;
    if (seen_ > limit)
      text_ += "... " + std::to_string(seen_ - limit) + " more instructions; the limit is " +
               std::to_string(limit) + '\n';
    watch_.trace = std::move(text_);
  }

 private:
  const std::string& told(const Insn& i) {
    std::string& line = lines_[&i];
    if (line.empty()) {
      const Party p = party_of(launch_, i);
      line = p.place + (p.line.empty() ? "" : " " + p.line) + ": " + with_names(launch_, p.text);
    }
    return line;
  }

  Watch& watch_;
  LaunchState& launch_;
  std::unordered_map<const Insn*, std::string> lines_;   // everything but workgroup and wave
  std::string text_;
  uint64_t seen_ = 0;
};

}  // namespace

std::unique_ptr<Observer> make_trace(Watch& watch, LaunchState& launch) {
  return std::make_unique<Trace>(watch, launch);
}

}  // namespace netra
