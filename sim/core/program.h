// A code object as instructions: disassembled once, bound to semantics once per kernel.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "code_object.h"
#include "insn.h"
#include "machine.h"

namespace netra {

// One line of llvm-objdump: an instruction, its address and its source line.
struct TextLine {
  uint64_t address = 0;       // ELF address
  uint32_t bytes = 0;
  std::string text;           // "v_add_f32_e32 v1, v2, v3"
  uint32_t source = 0;        // index into Disassembly::sources
};
struct Disassembly {
  std::vector<TextLine> lines;
  std::vector<std::string> sources = {""};   // "asm/gfx950/argmax_f32_stage1.s:31"
};

// Runs the toolchain's llvm-objdump over the image (disassemble.cc). wave64 matters on gfx1151,
// where the same bytes print with other mask operands. null and `error` on failure.
std::shared_ptr<Disassembly> disassemble(const CodeObject& object, bool wave64, std::string* error);
// Reads that text. null and `error` when it cannot be the text of the object: addresses must rise and
// lie in the file's code.
std::shared_ptr<Disassembly> read_disassembly(const std::string& text, const CodeObject& object,
                                              std::string* error);

// Reads one instruction's text into operands and modifiers (parse.cc). False when the text is not
// understood; `refusal` then says what is not.
bool parse_instruction(const std::string& text, Insn* insn, std::string* mnemonic,
                       std::string* refusal);

// The bound program of one kernel: register limits, AGPR placement and wave size are its own.
class Program {
 public:
  static std::shared_ptr<const Program> build(const CodeObject& object, const Kernel& kernel,
                                              const Disassembly& text);

  const Insn* code() const { return code_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(code_.size()); }
  // The instruction at a loaded address; -1 when none starts there.
  int32_t at(uint64_t pc) const;
  const std::string& line(const Insn& i) const { return sources_[i.line]; }
  UsedRegisters used() const { return used_; }
  int32_t entry() const { return entry_; }

 private:
  friend class Binder;
  std::vector<Insn> code_;
  std::vector<int32_t> index_;          // by dword from text_begin_
  uint64_t text_begin_ = 0;
  int32_t entry_ = -1;
  std::vector<std::string> sources_;
  std::deque<std::string> texts_;
  std::deque<Insn> halves_;             // VOPD
  std::deque<std::array<uint32_t, 128>> constants_;
  UsedRegisters used_;
};

// The semantics row for a mnemonic without its encoding suffix; null when there is none.
// `variant` is kClampRow, kReturnRow or 0: a row with that flag is preferred where there is one.
const Row* find_row(const std::string& mnemonic, Arch arch, uint32_t variant);
// Why an instruction is left out on purpose (refused.cc); null when it is not.
const char* reason_left_out(const std::string& mnemonic);
// What is wrong with NETRA_SIM_HOST; empty when nothing is.
const std::string& host_error();
// Every row, for coverage reports and tests.
const std::vector<const Row*>& all_rows();

}  // namespace netra
