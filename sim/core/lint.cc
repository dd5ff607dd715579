// What can be told about a code object without running it, as JSON: descriptor against metadata
// against code, encodings that the assembler takes in silence, wait states and waits along every path.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "check/facts.h"
#include "check/paths.h"
#include "code_object.h"
#include "json.h"
#include "launch.h"
#include "machine.h"
#include "program.h"

namespace netra {
namespace {

constexpr uint32_t kKernargPointer = 1u << 3;   // of Descriptor::properties

class Lint {
 public:
  Lint(const CodeObject& object, const Kernel& kernel, const Program& program)
      : object_(object), kernel_(kernel), program_(program), d_(kernel.descriptor),
        facts_(program, object.arch == "gfx950" ? kGfx950 : kGfx1151, d_.wave32 ? 32 : 64),
        findings_(launch_) {
    launch_.target = find_target(object.arch);
    launch_.object = &object;
    launch_.kernel = &kernel;
    launch_.program = &program;
  }

  std::vector<Finding> run() {
    if (program_.entry() < 0) return {};   // the loader has made sure that the entry is code
    descriptor();
    arguments();
    instructions();
    check_paths(launch_, &facts_, &findings_);
    return findings_.take();
  }

 private:
  const Insn& entry() const { return program_.code()[program_.entry()]; }

  // About the kernel as a whole; told at its first instruction.
  void whole(const char* kind, const std::string& rule, Severity severity, Certainty certainty, std::string text,
             std::string mend) {
    Finding* f = findings_.add(entry(), nullptr, kind, rule, severity, certainty);
    if (!f) return;
    f->text = std::move(text);
    f->mend = std::move(mend);
  }

  void descriptor() {
    if (!kernel_.has_metadata) {
      whole("metadata", "E.3 metadata", Severity::error, Certainty::compiler_only, "the kernel has no metadata: HIP cannot launch it",
            "add its entry to .amdgpu_metadata");
    }
    if (d_.lds_bytes > launch_.target->lds_bytes)
      whole("descriptor", "E.1 LDS", Severity::error, Certainty::compiler_only,
            "the descriptor asks for " + std::to_string(d_.lds_bytes) + " bytes of LDS; a workgroup of " + object_.arch + " has at most " +
                std::to_string(launch_.target->lds_bytes),
            "lower .amdhsa_group_segment_fixed_size");
    if ((d_.rsrc1 >> 16 & 3) != 3)
      whole("descriptor", "float mode", Severity::warning, Certainty::isa_and_compiler,
            "f32 denormals are flushed, which is what a descriptor that states nothing does",
            "state .amdhsa_float_denorm_mode_32; 3 keeps them");
    const UsedRegisters used = program_.used();
    const uint32_t vgprs = std::min(d_.accum_offset, d_.vgprs_allocated);
    allocated("VGPR", used.vgpr, vgprs);
    allocated("AGPR", used.agpr, d_.vgprs_allocated - vgprs);
    if (d_.sgprs_allocated) allocated("SGPR", used.sgpr, d_.sgprs_allocated);
    if (!kernel_.has_metadata) return;
    declared("VGPR", ".vgpr_count", used.vgpr, kernel_.meta_vgprs);
    declared("AGPR", ".agpr_count", used.agpr, kernel_.meta_agprs);
    declared("SGPR", ".sgpr_count", used.sgpr, kernel_.meta_sgprs);
  }

  void allocated(const char* file, uint32_t used, uint32_t has) {
    if (used <= has) return;
    whole("registers", std::string("E.3 ") + file, Severity::error, Certainty::isa_only,
          "the code names " + std::to_string(used) + " " + file + "s and the descriptor allocates " + std::to_string(has) +
              ": the hardware reads register 0 and drops the write, in silence",
          "raise .amdhsa_next_free_* or .amdhsa_accum_offset");
  }
  void declared(const char* file, const char* key, uint32_t used, uint32_t says) {
    if (used <= says) return;
    whole("metadata", std::string("E.3 ") + key, Severity::error, Certainty::inferred,
          "the code names " + std::to_string(used) + " " + file + "s and the metadata says " + std::to_string(says),
          std::string("raise ") + key);
  }

  void arguments() {
    if (!kernel_.has_metadata) return;
    const KernelArg* before = nullptr;
    for (const KernelArg& arg : kernel_.args) {
      const std::string name = arg.name.empty() ? arg.value_kind : arg.name;
      if (before && arg.offset < before->offset + before->size)
        whole("metadata", "E.3 .args " + name, Severity::error, Certainty::inferred,
              "argument " + name + " starts at byte " + std::to_string(arg.offset) + ", inside the one before it",
              "arguments rise and do not share bytes");
      before = &arg;
    }
    kernarg_loads();
  }

  // s_load through the kernarg pointer, as long as the code has not written that pair.
  void kernarg_loads() {
    if (!(d_.properties & kKernargPointer)) return;
    const uint16_t pointer = static_cast<uint16_t>((d_.properties & 1 ? 4 : 0) + (d_.properties & 2 ? 2 : 0) + (d_.properties & 4 ? 2 : 0));
    for_code([&](const Insn& i) {
      const Facts& f = facts_[i];
      const bool load = f.is(kIsSmem) && f.is(kIsLoad) && i.operands == 3 && i.op[1].kind == Kind::sgpr && i.op[1].index == pointer &&
                        i.op[1].dwords == 2 && f.writes && i.op[2].kind != Kind::sgpr;
      if (load) kernarg_load(i, i.op[2], f.written[0].count * 4u);
      for (int k = 0; k < f.writes; ++k)
        if (f.written[k].file == File::scalar && f.written[k].index < pointer + 2 && pointer < f.written[k].index + f.written[k].count)
          return false;
      return true;
    });
  }

  void kernarg_load(const Insn& i, const Operand& at, uint32_t bytes) {
    const int64_t first = static_cast<int64_t>(at.value) + i.offset, end = first + bytes;
    const auto tell = [&](const char* rule, std::string text, const char* mend) {
      Finding* f = findings_.add(i, nullptr, "kernarg", rule, Severity::error, Certainty::inferred);
      if (f) f->text = std::move(text), f->mend = mend;
    };
    if (first < 0 || end > d_.kernarg_bytes)
      return tell("E.3 kernarg", "reads bytes " + std::to_string(first) + " to " + std::to_string(end - 1) + " of a kernarg segment of " +
                                     std::to_string(d_.kernarg_bytes) + " bytes",
                  "mend the offset, or raise .amdhsa_kernarg_size and .kernarg_segment_size");
    const bool any = std::any_of(kernel_.args.begin(), kernel_.args.end(), [&](const KernelArg& a) {
      return a.offset < end && first < static_cast<int64_t>(a.offset) + a.size;
    });
    if (!any)
      tell("E.3 .args", "reads bytes " + std::to_string(first) + " to " + std::to_string(end - 1) + " of the kernarg segment, where .args has no argument",
           "add the argument to .args, or mend the offset");
  }

  template <class F> void for_code(F each) {
    for (uint32_t k = 0; k < program_.size(); ++k) {
      const Insn& i = program_.code()[k];
      if (i.pc < kernel_.entry || i.pc - kernel_.entry >= kernel_.code_size) continue;
      if (!each(i)) return;
    }
  }

  void instructions() {
    for_code([&](const Insn& i) {
      const Facts& f = facts_[i];
      if (i.refusal) {
        Finding* found = findings_.add(i, nullptr, "instruction", "refused", Severity::error, Certainty::inferred);
        if (found) found->text = i.refusal;
      }
      if (mnemonic_of(i) == "s_nop" && i.imm > 15) {
        Finding* found = findings_.add(i, nullptr, "wait_states", "s_nop", Severity::error, Certainty::inferred);
        if (found) {
          found->text = "s_nop " + std::to_string(i.imm) + ": only the low four bits count, so this is " + std::to_string((i.imm & 15) + 1) +
                        (i.imm & 15 ? " wait states" : " wait state");
          found->mend = "s_nop takes 0 to 15; write two";
        }
      }
      if (f.is(kIsMfma) && f.writes && f.written[0].count > 4) factors(i, f);
      return true;
    });
  }

  // A result of more than four registers is written while A and B are still being read.
  void factors(const Insn& i, const Facts& f) {
    const Ref& d = f.written[0];
    for (int k = 0; k < f.reads; ++k) {
      const Ref& r = f.read[k];
      if (r.file != File::vgpr || (r.slot != 1 && r.slot != 2) || r.index >= d.index + d.count || d.index >= r.index + r.count) continue;
      Finding* found = findings_.add(i, nullptr, "operands", r.slot == 1 ? "A.2 D over A" : "A.2 D over B", Severity::error, Certainty::compiler_only);
      if (!found) continue;
      found->reg = vgpr_name(launch_, std::max(r.index, d.index));
      found->text = found->reg + " belongs to the result and to " + (r.slot == 1 ? "A" : "B") + ", and the result has more than four registers";
      found->mend = "keep D apart from A and B";
    }
  }

  const CodeObject& object_;
  const Kernel& kernel_;
  const Program& program_;
  const Descriptor& d_;
  LaunchState launch_;
  FactsTable facts_;
  CodeFindings findings_;
};

int lint(const void* image, size_t size, std::string* text) {
  json::Writer json;
  std::string error;
  int code = 0;
  Memory memory;
  const auto object = load_code_object(image, size, "<memory>", &memory, 0, &error, &code);
  json.open('{');
  std::string findings;
  for (const Kernel& kernel : object ? object->kernels : std::vector<Kernel>{}) {
    const auto lines = disassemble(*object, !kernel.descriptor.wave32, &error);
    const auto program = lines ? Program::build(*object, kernel, *lines) : nullptr;
    if (!program) {
      code = 1;
      break;
    }
    for (const Finding& f : Lint(*object, kernel, *program).run()) findings += (findings.empty() ? "" : ",") + f.json();
  }
  if (code || !object) {
    json.key("error").string(error);
  } else {
    *text = "{\"arch\":" + json::quote(object->arch) + ",\"findings\":[" + findings + "]}";
    return 0;
  }
  json.close('}');
  *text = json.text();
  return code;
}

}  // namespace
}  // namespace netra

extern "C" {

// Judges a code object without running it. Returns 0 and {"arch", "findings": [...]}, or an error
// code and {"error": "..."}. Free the text with netraSimFree.
int netraSimLint(const void* image, size_t size, char** out) {
  if (out == nullptr || (image == nullptr && size != 0)) return 1;   // hipErrorInvalidValue
  *out = nullptr;
  try {
    std::string text;
    const int code = netra::lint(image, size, &text);
    *out = static_cast<char*>(std::malloc(text.size() + 1));
    if (*out == nullptr) return 2;   // hipErrorOutOfMemory
    std::memcpy(*out, text.c_str(), text.size() + 1);
    return code;
  } catch (const std::bad_alloc&) {
    return 2;
  } catch (...) {
    return 999;   // hipErrorUnknown
  }
}

}  // extern "C"
