// Reads catalog.bin and follows every index in it once, so that nobody has to again.
#include "catalog.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "error.h"
#include "sha256.h"

namespace netra::bridge {
namespace {

constexpr char kMagic[] = "NETRACAT";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kSections = 12;
constexpr size_t kHashed = 56;  // where the bytes that the checksum covers begin
constexpr size_t kHeader = kHashed + kSections * 16;
constexpr uint32_t kMostSlots = 255;
constexpr uint32_t kMaturities = 6;
constexpr uint32_t kLargestKernarg = 65536;

// Numbers that no string has: of dtypes that no contract names, and of other names.
constexpr uint64_t kDtypeName = uint64_t{1} << 32;
constexpr uint64_t kForeignName = uint64_t{1} << 63;

struct Dtype {
  const char* name;
  uint8_t bytes;
};

constexpr Dtype kDtypes[kLastDtype + 1] = {
    {"", 0},           {"f64", 8},     {"f32", 4},        {"f16", 2}, {"bf16", 2},
    {"f8e4m3fn", 1},   {"f8e4m3fnuz", 1}, {"f8e5m2", 1},  {"i64", 8}, {"i32", 4},
    {"i16", 2},        {"i8", 1},      {"u64", 8},        {"u32", 4}, {"u16", 2},
    {"u8", 1},         {"e8m0", 1},    {"bool", 1},
};

static_assert(sizeof(StringRecord) == 8 && sizeof(Instruction) == 8 && sizeof(OpRecord) == 52 &&
              sizeof(OpArgRecord) == 36 && sizeof(TacticRecord) == 192 &&
              sizeof(PredicateRecord) == 16 && sizeof(LaunchRecord) == 48 &&
              sizeof(ArgRecord) == 20 && sizeof(KernelRecord) == 112);

template <typename T>
T at(const std::vector<uint8_t>& file, size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

uint64_t foreign_name(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash | kForeignName;
}

// Whether a text is UTF-8: no stray byte, nothing longer than it need be, no surrogate.
bool is_utf8(const char* text, size_t size) {
  for (size_t i = 0; i < size;) {
    const auto head = static_cast<uint8_t>(text[i++]);
    if (head < 0x80) continue;
    const size_t more = head >= 0xf0 ? 3 : head >= 0xe0 ? 2 : 1;
    if (head < 0xc2 || head > 0xf4 || size - i < more) return false;
    uint32_t point = head & (0x3fu >> more);
    for (size_t k = 0; k < more; ++k) {
      const auto byte = static_cast<uint8_t>(text[i++]);
      if ((byte & 0xc0) != 0x80) return false;
      point = point << 6 | (byte & 0x3fu);
    }
    static constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (point < kLeast[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
      return false;
  }
  return true;
}

}  // namespace

uint64_t dtype_bytes(int dtype) {
  return dtype < 1 || dtype > kLastDtype ? 0 : kDtypes[dtype].bytes;
}

uint64_t Catalog::name(std::string_view text) const {
  const auto view = [&](uint32_t s) { return std::string_view(this->text(s), lengths_[s]); };
  const auto found =
      std::lower_bound(alphabetical_.begin(), alphabetical_.end(), text,
                       [&](uint32_t s, std::string_view wanted) { return view(s) < wanted; });
  return found != alphabetical_.end() && view(*found) == text ? *found : foreign_name(text);
}

// One reading of one file. Each step returns NETRA_OK or the error that it has stored.
class CatalogChecker {
 public:
  CatalogChecker(Catalog* catalog, const std::vector<uint8_t>& file, const char* path)
      : catalog_(*catalog), file_(file), path_(path) {}

  int check() {
    for (const auto step : {&CatalogChecker::header, &CatalogChecker::sections,
                            &CatalogChecker::strings, &CatalogChecker::kernels,
                            &CatalogChecker::ops, &CatalogChecker::tactics})
      if (const int status = (this->*step)()) return status;
    return NETRA_OK;
  }

 private:
  __attribute__((format(printf, 2, 3))) int bad(const char* format, ...) const {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fail(NETRA_ERROR_CATALOG, "%s: %s. Build it again: netra-catalog build", path_, text);
  }

  int header() {
    if (file_.size() < kHashed || std::memcmp(file_.data(), kMagic, 8) != 0)
      return bad("it is no compiled catalog");
    const auto version = at<uint32_t>(file_, 8);
    if (version != kVersion) return bad("it is version %u, want %u", version, kVersion);
    const auto size = at<uint64_t>(file_, 16);
    if (size != file_.size())
      return bad("it says that it has %llu bytes and has %zu",
                 static_cast<unsigned long long>(size), file_.size());
    Sha256 hash;
    hash.update(file_.data() + kHashed, file_.size() - kHashed);
    const Sha256::Digest digest = hash.finish();
    if (std::memcmp(digest.data(), file_.data() + 24, digest.size()) != 0)
      return bad("it is damaged: its checksum is wrong");
    const auto count = at<uint32_t>(file_, 12);
    if (count != kSections) return bad("it has %u sections, want %u", count, kSections);
    if (file_.size() < kHeader) return bad("it ends within its section table");
    return NETRA_OK;
  }

  template <typename T>
  int section(uint32_t number, std::vector<T>* records) const {
    const size_t entry = kHashed + (number - 1) * size_t{16};
    const auto offset = at<uint32_t>(file_, entry + 4);
    const auto count = at<uint32_t>(file_, entry + 8);
    if (at<uint32_t>(file_, entry) != number || at<uint32_t>(file_, entry + 12) != sizeof(T) ||
        offset % 16 != 0)
      return bad("section %u is not as version %u has it", number, kVersion);
    if (offset < kHeader || offset + static_cast<uint64_t>(count) * sizeof(T) > file_.size())
      return bad("section %u does not lie within the file", number);
    records->resize(count);
    if (count != 0)
      std::memcpy(static_cast<void*>(records->data()), file_.data() + offset, count * sizeof(T));
    return NETRA_OK;
  }

  int sections() {
    Catalog& c = catalog_;
    int status = section(1, &text_);
    if (status == 0) status = section(2, &strings_);
    if (status == 0) status = section(3, &c.constants);
    if (status == 0) status = section(4, &c.code);
    if (status == 0) status = section(5, &c.lists);
    if (status == 0) status = section(6, &c.ops);
    if (status == 0) status = section(7, &c.op_args);
    if (status == 0) status = section(8, &c.tactics);
    if (status == 0) status = section(9, &c.predicates);
    if (status == 0) status = section(10, &c.launches);
    if (status == 0) status = section(11, &c.args);
    if (status == 0) status = section(12, &c.kernels);
    return status;
  }

  int strings() {
    if (strings_.empty() || strings_[0].length != 0) return bad("string 0 is not empty");
    uint64_t total = 0;
    for (size_t i = 0; i < strings_.size(); ++i) {
      const StringRecord& s = strings_[i];
      if (static_cast<uint64_t>(s.offset) + s.length > text_.size())
        return bad("string %zu lies beyond the text", i);
      if (s.length != 0 && std::memchr(text_.data() + s.offset, 0, s.length) != nullptr)
        return bad("string %zu holds a zero byte", i);
      if (!is_utf8(text_.data() + s.offset, s.length)) return bad("string %zu is not UTF-8", i);
      total += s.length + 1;
      // No two strings are equal, so they cannot be much more than the text they lie in.
      if (total > 2 * static_cast<uint64_t>(file_.size()))
        return bad("its strings overlap");
    }
    Catalog& c = catalog_;
    c.arena_.reserve(total);
    for (const StringRecord& s : strings_) {
      c.starts_.push_back(static_cast<uint32_t>(c.arena_.size()));
      c.lengths_.push_back(s.length);
      c.arena_.insert(c.arena_.end(), text_.begin() + s.offset,
                      text_.begin() + s.offset + s.length);
      c.arena_.push_back(0);
    }
    c.alphabetical_.resize(strings_.size());
    std::iota(c.alphabetical_.begin(), c.alphabetical_.end(), 0u);
    const auto compared = [&](uint32_t a, uint32_t b) { return view(a).compare(view(b)); };
    std::sort(c.alphabetical_.begin(), c.alphabetical_.end(),
              [&](uint32_t a, uint32_t b) { return compared(a, b) < 0; });
    for (size_t i = 1; i < strings_.size(); ++i)
      if (compared(c.alphabetical_[i - 1], c.alphabetical_[i]) == 0)
        return bad("strings %u and %u are the same", c.alphabetical_[i - 1], c.alphabetical_[i]);
    for (int dtype = 1; dtype <= kLastDtype; ++dtype) {
      const uint64_t name = c.name(kDtypes[dtype].name);
      c.dtypes_[static_cast<size_t>(dtype)] =
          name < kForeignName ? name : kDtypeName + static_cast<uint64_t>(dtype);
    }
    c.unknown_layout_ = c.name("unknown");
    return NETRA_OK;
  }

  std::string_view view(uint32_t string) const {
    return {catalog_.text(string), catalog_.lengths_[string]};
  }

  bool are_strings(std::initializer_list<uint32_t> indices) const {
    return std::all_of(indices.begin(), indices.end(),
                       [&](uint32_t index) { return index < strings_.size(); });
  }

  static bool in(uint32_t first, uint32_t count, size_t size) {
    return static_cast<uint64_t>(first) + count <= size;
  }

  bool list(uint32_t first, uint32_t count, size_t size) const {
    const auto& lists = catalog_.lists;
    if (!in(first, count, lists.size())) return false;
    return std::all_of(lists.begin() + first, lists.begin() + first + count,
                       [&](uint32_t index) { return index < size; });
  }

  bool words(uint32_t first, uint32_t count) const { return list(first, count, strings_.size()); }

  int kernels() {
    for (size_t i = 0; i < catalog_.kernels.size(); ++i) {
      const KernelRecord& k = catalog_.kernels[i];
      if (!are_strings({k.name, k.arch})) return bad("kernel %zu has an index out of range", i);
    }
    return NETRA_OK;
  }

  int ops() {
    for (uint32_t i = 0; i < catalog_.ops.size(); ++i) {
      const OpRecord& op = catalog_.ops[i];
      const auto* t = op.texts;
      if (!are_strings({op.name, t[0], t[1], t[2], t[3], t[4], t[5]}) ||
          !words(op.phases, op.phase_count) || op.arg_count > kMostSlots ||
          !in(op.args, op.arg_count, catalog_.op_args.size()) ||
          !in(op.tactics, op.tactic_count, catalog_.tactics.size()))
        return bad("op %u has an index out of range", i);
      if (i != 0 && view(catalog_.ops[i - 1].name) >= view(op.name))
        return bad("op %u is not in the order of names", i);
      for (uint32_t slot = 0; slot < op.arg_count; ++slot)
        if (const int status = op_arg(op, slot)) return status;
    }
    return NETRA_OK;
  }

  int op_arg(const OpRecord& op, uint32_t slot) const {
    const OpArgRecord& arg = catalog_.op_args[op.args + slot];
    if (!are_strings({arg.name, arg.layout, arg.doc}) || !words(arg.dtypes, arg.dtype_count) ||
        !words(arg.dims, arg.dim_count) ||
        (arg.has_default != 0 && arg.default_value >= catalog_.constants.size()))
      return bad("argument %u of op %s has an index out of range", slot, catalog_.text(op.name));
    if (arg.kind > kScalarF64 || arg.role > 2 || arg.has_default > 1 ||
        (arg.kind == kTensor && arg.has_default != 0))
      return bad("argument %u of op %s is of no kind that there is", slot, catalog_.text(op.name));
    for (uint32_t other = 0; other < slot; ++other)
      if (catalog_.op_args[op.args + other].name == arg.name)
        return bad("op %s has two arguments of one name", catalog_.text(op.name));
    return NETRA_OK;
  }

  int tactics() {
    catalog_.arg_types.resize(catalog_.args.size());
    for (uint32_t i = 0; i < catalog_.tactics.size(); ++i)
      if (const int status = tactic(i)) return status;
    return NETRA_OK;
  }

  int tactic(uint32_t index) {
    const TacticRecord& t = catalog_.tactics[index];
    const auto* n = t.numerics;
    if (!are_strings({t.id, t.arch, t.oracle, t.variant, t.hold, t.zeroed_by, n[0], n[1], n[2],
                      n[3], t.file}) ||
        t.op >= catalog_.ops.size() || t.maturity >= kMaturities || t.rank > INT32_MAX ||
        !in(t.predicates, t.predicate_count, catalog_.predicates.size()) ||
        !in(t.launches, t.launch_count, catalog_.launches.size()) ||
        !words(t.reads, t.read_count) || !words(t.writes, t.write_count) ||
        !words(t.commits, t.commit_count) || !words(t.fallback, t.fallback_count) ||
        !list(t.kernels, t.kernel_count, catalog_.kernels.size()))
      return bad("tactic %u has an index out of range", index);
    const OpRecord& op = catalog_.ops[t.op];
    if (index < op.tactics || index - op.tactics >= op.tactic_count)
      return bad("tactic %s is not among those of its op", catalog_.text(t.id));
    if (index != 0 && !before(catalog_.tactics[index - 1], t))
      return bad("tactic %s is not in the order of op, target, rank and id", catalog_.text(t.id));
    if (const int status = program(t, t.workspace, Type::kInteger, "its workspace")) return status;
    for (uint32_t i = 0; i < t.predicate_count; ++i) {
      const PredicateRecord& p = catalog_.predicates[t.predicates + i];
      if (!are_strings({p.id, p.text}))
        return bad("tactic %s: predicate %u has an index out of range", catalog_.text(t.id), i);
      if (const int status = program(t, p.program, Type::kInteger, catalog_.text(p.id)))
        return status;
    }
    for (uint32_t i = 0; i < t.launch_count; ++i)
      if (const int status = launch(t, i)) return status;
    return NETRA_OK;
  }

  bool before(const TacticRecord& a, const TacticRecord& b) const {
    if (a.op != b.op) return a.op < b.op;
    if (a.arch != b.arch) return view(a.arch) < view(b.arch);
    return a.rank != b.rank ? a.rank < b.rank : view(a.id) < view(b.id);
  }

  int launch(const TacticRecord& t, uint32_t number) {
    const LaunchRecord& l = catalog_.launches[t.launches + number];
    const char* id = catalog_.text(t.id);
    if (l.kernel >= catalog_.kernels.size() ||
        !in(l.args, l.arg_count, catalog_.args.size()) || l.kernarg_size > kLargestKernarg)
      return bad("tactic %s: launch %u has a number out of range", id, number);
    if (catalog_.kernels[l.kernel].arch != t.arch)
      return bad("tactic %s: launch %u has a kernel of another target", id, number);
    for (const uint32_t start : {l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1],
                                 l.block[2], l.lds})
      if (const int status = program(t, start, Type::kInteger, "a launch")) return status;
    for (uint32_t i = 0; i < l.arg_count; ++i) {
      const ArgRecord& arg = catalog_.args[l.args + i];
      const uint64_t bytes = arg.kind < kU32 ? 8 : 4;
      if (arg.kind > kF32 || arg.name >= strings_.size() ||
          arg.offset + bytes > l.kernarg_size)
        return bad("tactic %s: launch %u: argument %u does not fit", id, number, i);
      const bool real = arg.kind == kF32 || arg.kind == kF64;
      if (const int status = program(t, arg.program, real ? Type::kReal : Type::kInteger,
                                     catalog_.text(arg.name)))
        return status;
      catalog_.arg_types[l.args + i] =
          known_.at(static_cast<uint64_t>(t.op) << 32 | arg.program);
    }
    return NETRA_OK;
  }

  // Programs are shared: each is checked once for each op that runs it.
  int program(const TacticRecord& t, uint32_t start, Type wanted, const char* of) {
    const uint64_t key = static_cast<uint64_t>(t.op) << 32 | start;
    auto found = known_.find(key);
    if (found == known_.end()) {
      Type type = Type::kInteger;
      uint32_t where = 0;
      if (const char* wrong = check_program(catalog_, catalog_.ops[t.op], start, &type, &where))
        return bad("tactic %s: %s: instruction %u: %s", catalog_.text(t.id), of, where, wrong);
      found = known_.emplace(key, type).first;
    }
    // An integer where a float is wanted is converted, as Python does.
    if (found->second != wanted && !(wanted == Type::kReal && found->second == Type::kInteger))
      return bad("tactic %s: %s: the program gives a value of another type",
                 catalog_.text(t.id), of);
    return NETRA_OK;
  }

  Catalog& catalog_;
  const std::vector<uint8_t>& file_;
  const char* path_;
  std::vector<char> text_;
  std::vector<StringRecord> strings_;
  std::unordered_map<uint64_t, Type> known_;
};

int Catalog::read(const std::vector<uint8_t>& file, const char* path) {
  path_ = path;
  return CatalogChecker(this, file, path_.c_str()).check();
}

}  // namespace netra::bridge
