// The programs of catalog.bin: checked once, then run on call after call without a doubt left.
#include <algorithm>
#include <cstring>

#include "catalog.h"

namespace netra::bridge {
namespace {

enum Code : uint8_t {
  kEnd = 0,
  kInt,
  kWord,
  kFloat,
  kScalar,
  kRealScalar,
  kPointer,
  kShape,
  kStride,
  kNdim,
  kDtype,
  kLayout,
  kReach,
  kExtent,
  kSignature,
  kWorkspace,
  kAdd = 20,
  kSub,
  kMul,
  kDiv,
  kMod,
  kPow,
  kNeg,
  kMin,
  kMax,
  kCeilDiv,
  kEq = 30,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kFEq = 40,
  kFNe,
  kFLt,
  kFLe,
  kFGt,
  kFGe,
  kNot = 50,
  kAligned,
  kPow2,
  kContiguous,
  kDisjoint,
  kAnd = 60,
  kOr,
  kIn,
};

constexpr int kStack = 64;
constexpr uint32_t kLongest = 65535;

constexpr Int128 kLowest = -(static_cast<Int128>(1) << 126) * 2;
// Farther than any address or 64-bit number, and far from the ends of 128 bits.
constexpr Int128 kFar = static_cast<Int128>(1) << 100;

// ---- tensors --------------------------------------------------------------------------------

bool empty(const netra_tensor& t) {
  for (int i = 0; i < t.ndim; ++i)
    if (t.shape[i] == 0) return true;
  return false;
}

Int128 clamp(Int128 value) { return value > kFar ? kFar : value < -kFar ? -kFar : value; }

// Offsets of the first and the last byte. Where they leave +-2^100 they stay there: no comparison
// with an address or an extent can tell the difference.
void reach(const netra_tensor& t, Int128* first, Int128* last) {
  *first = 0, *last = -1;
  if (empty(t)) return;
  Int128 low = 0, high = 0;
  for (int i = 0; i < t.ndim; ++i) {
    const Int128 step = static_cast<Int128>(t.shape[i] - static_cast<Int128>(1)) * t.strides[i];
    if (t.strides[i] < 0)
      low = clamp(low + clamp(step));
    else
      high = clamp(high + clamp(step));
  }
  const auto bytes = static_cast<Int128>(dtype_bytes(t.dtype));
  *first = low * bytes;
  *last = (high + 1) * bytes - 1;
}

bool contiguous(const netra_tensor& t) {
  if (empty(t)) return true;
  constexpr Int128 kNoStride = static_cast<Int128>(1) << 64;
  Int128 step = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != step) return false;
    step *= t.shape[i];
    if (step > kNoStride) step = kNoStride;
  }
  return true;
}

bool disjoint(const netra_tensor& a, const netra_tensor& b) {
  if (empty(a) || empty(b)) return true;
  Int128 a_first, a_last, b_first, b_last;
  reach(a, &a_first, &a_last);
  reach(b, &b_first, &b_last);
  return a.data + a_last < b.data + b_first || b.data + b_last < a.data + a_first;
}

// ---- arithmetic -----------------------------------------------------------------------------

bool fits_64(Int128 value) { return value >= INT64_MIN && value <= static_cast<Int128>(UINT64_MAX); }

// Towards minus infinity. The divisor is not 0; false when the quotient leaves 128 bits.
bool floor_divide(Int128 a, Int128 b, Int128* quotient, Int128* rest) {
  if (b == -1) {  // the only divisor that can overflow, and the processor traps on it
    *rest = 0;
    *quotient = a == kLowest ? 0 : -a;
    return a != kLowest;
  }
  *quotient = a / b;
  *rest = a % b;
  if (*rest != 0 && (*rest < 0) != (b < 0)) {
    *quotient -= 1;
    *rest += b;
  }
  return true;
}

// The exponent is not negative.
bool power(Int128 base, Int128 exponent, Int128* result) {
  *result = 1;
  if (exponent == 0) return true;
  if (base >= -1 && base <= 1) {
    *result = base == -1 && (exponent & 1) == 0 ? 1 : base;
    return true;
  }
  if (exponent > 127) return false;
  for (; exponent != 0; --exponent)
    if (__builtin_mul_overflow(*result, base, result)) return false;
  return true;
}

// NaN is unequal to everything and in no order with anything.
template <typename T>
bool compare(int relation, T a, T b) {
  switch (relation) {
    case 0: return a == b;
    case 1: return a != b;
    case 2: return a < b;
    case 3: return a <= b;
    case 4: return a > b;
    default: return a >= b;
  }
}

// The arithmetic of two integers.
Outcome combine(uint8_t code, Int128 a, Int128 b, Int128* result) {
  const auto exact = [](bool overflow) { return overflow ? Outcome::kOverflow : Outcome::kValue; };
  Int128 quotient = 0, rest = 0;
  switch (code) {
    case kAdd: return exact(__builtin_add_overflow(a, b, result));
    case kSub: return exact(__builtin_sub_overflow(a, b, result));
    case kMul: return exact(__builtin_mul_overflow(a, b, result));
    case kPow: return exact(!power(a, b, result));
    case kMin: *result = a < b ? a : b; return Outcome::kValue;
    case kMax: *result = a > b ? a : b; return Outcome::kValue;
    default: break;
  }
  if (b == 0) return Outcome::kUndefined;
  const bool fits = floor_divide(a, b, &quotient, &rest);
  switch (code) {
    case kMod: *result = rest; return Outcome::kValue;
    case kAligned: *result = rest == 0; return Outcome::kValue;
    // A rest means that |b| > 1, so that one more cannot overflow.
    case kCeilDiv: *result = quotient + (rest != 0); return exact(!fits);
    default: *result = quotient; return exact(!fits);
  }
}

// ---- inputs ---------------------------------------------------------------------------------

// The integer in a slot, or its default; false when there is neither.
bool integer_slot(const Catalog& catalog, const netra_call& call, uint8_t slot, Int128* value) {
  const netra_slot& given = call.slots[slot];
  if (given.kind == NETRA_SIGNED) return *value = given.value.i, true;
  if (given.kind == NETRA_UNSIGNED) return *value = given.value.u, true;
  const OpRecord& op = catalog.ops[static_cast<size_t>(call.op)];
  const OpArgRecord& arg = catalog.op_args[op.args + slot];
  if (given.kind != NETRA_ABSENT || arg.has_default == 0) return false;
  *value = catalog.constants[arg.default_value];
  return true;
}

double real_constant(Int128 raw) {
  const auto low = static_cast<uint64_t>(raw);
  double value;
  std::memcpy(&value, &low, sizeof value);
  return value;
}

bool real_slot(const Catalog& catalog, const netra_call& call, uint8_t slot, double* value) {
  const netra_slot& given = call.slots[slot];
  const OpRecord& op = catalog.ops[static_cast<size_t>(call.op)];
  const OpArgRecord& arg = catalog.op_args[op.args + slot];
  switch (given.kind) {
    case NETRA_REAL: *value = given.value.f; break;
    case NETRA_SIGNED: *value = static_cast<double>(given.value.i); break;
    case NETRA_UNSIGNED: *value = static_cast<double>(given.value.u); break;
    case NETRA_ABSENT:
      if (arg.has_default == 0) return false;
      *value = real_constant(catalog.constants[arg.default_value]);
      break;
    default: return false;
  }
  if (arg.kind == kScalarF32) *value = static_cast<float>(*value);
  return true;
}

Outcome load_tensor(const Catalog& catalog, const Instruction& in, const netra_call& call,
                    Int128* value) {
  const netra_slot& slot = call.slots[in.a];
  if (slot.kind != NETRA_TENSOR) return Outcome::kUndefined;
  const netra_tensor& t = slot.value.tensor;
  Int128 first = 0;
  switch (in.code) {
    case kPointer: *value = t.data; break;
    case kShape:
    case kStride:
      if (in.b >= t.ndim) return Outcome::kUndefined;
      *value = in.code == kShape ? t.shape[in.b] : t.strides[in.b];
      break;
    case kNdim: *value = t.ndim; break;
    case kDtype: *value = catalog.dtype_name(t.dtype); break;
    case kLayout:
      if (t.layout == 0 || t.layout == catalog.unknown_layout()) return Outcome::kUndefined;
      *value = t.layout;
      break;
    case kReach:
      reach(t, &first, value);
      return fits_64(*value) ? Outcome::kValue : Outcome::kOverflow;
    case kExtent: *value = t.extent; break;
    case kContiguous: *value = contiguous(t); break;
    default:
      if (call.slots[in.b].kind != NETRA_TENSOR) return Outcome::kUndefined;
      *value = disjoint(t, call.slots[in.b].value.tensor);
  }
  return Outcome::kValue;
}

// What is neither an operator nor a jump: it pushes one value.
Outcome load(const Catalog& catalog, const Instruction& in, const netra_call& call,
             uint64_t workspace, Value* value) {
  switch (in.code) {
    case kInt: value->integer = catalog.constants[in.c]; return Outcome::kValue;
    case kWord: value->integer = in.c; return Outcome::kValue;
    case kFloat: value->real = real_constant(catalog.constants[in.c]); return Outcome::kValue;
    case kScalar:
      if (!integer_slot(catalog, call, in.a, &value->integer)) return Outcome::kUndefined;
      return fits_64(value->integer) ? Outcome::kValue : Outcome::kOverflow;
    case kRealScalar:
      return real_slot(catalog, call, in.a, &value->real) ? Outcome::kValue : Outcome::kUndefined;
    case kSignature: {
      const uint64_t names[] = {call.arch, call.phase, call.graph};
      value->integer = in.b < 3 ? static_cast<Int128>(names[in.b]) : call.cu_count;
      return Outcome::kValue;
    }
    case kWorkspace: value->integer = workspace; return Outcome::kValue;
    default: return load_tensor(catalog, in, call, &value->integer);
  }
}

bool among(const Catalog& catalog, const Instruction& in, Int128 value) {
  for (uint32_t i = 0; i < in.b; ++i)
    if (catalog.constants[in.c + i] == value) return true;
  return false;
}

// ---- checking -------------------------------------------------------------------------------

// The types on a stack, two bits each, the top lowest: at most 64 entries.
struct Stack {
  UInt128 types = 0;
  int depth = 0;

  bool operator==(const Stack&) const = default;
  Type top() const { return static_cast<Type>(static_cast<unsigned>(types) & 3); }
  void push(Type type) {
    types = types << 2 | static_cast<unsigned>(type);
    ++depth;
  }
  Type pop() {
    const Type type = top();
    types >>= 2;
    --depth;
    return type;
  }
};

enum class Effect : uint8_t { kNone, kLoad, kUnary, kBinary, kRelation, kReals, kJump, kMember };

Effect effect_of(uint8_t code) {
  if ((code >= kInt && code <= kWorkspace) || code == kContiguous || code == kDisjoint)
    return Effect::kLoad;
  if (code == kNeg || code == kNot || code == kPow2) return Effect::kUnary;
  if ((code >= kAdd && code <= kCeilDiv) || code == kAligned) return Effect::kBinary;
  if (code >= kEq && code <= kGe) return Effect::kRelation;
  if (code >= kFEq && code <= kFGe) return Effect::kReals;
  if (code == kAnd || code == kOr) return Effect::kJump;
  return code == kIn ? Effect::kMember : Effect::kNone;
}

class ProgramChecker {
 public:
  ProgramChecker(const Catalog& catalog, const OpRecord& op) : catalog_(catalog), op_(op) {}

  const char* check(uint32_t start, Type* result, uint32_t* at) {
    uint32_t reach = start;  // the farthest target of a jump
    size_t next = 0;         // the first of targets_ that may still lie ahead
    for (*at = start;; ++*at) {
      if (*at >= catalog_.code.size()) return "it does not end";
      if (*at - start >= kLongest) return "it has more than 65535 instructions";
      for (size_t i = next; i < targets_.size(); ++i) {
        if (targets_[i].at == *at && !(targets_[i].stack == stack_))
          return "a jump arrives with another stack";
        if (i == next && targets_[i].at <= *at) ++next;
      }
      const Instruction& in = catalog_.code[*at];
      if (in.code == kEnd) {
        if (reach > *at) return "a jump leads beyond the end";
        if (stack_.depth != 1) return "it does not end with one value";
        *result = stack_.top();
        return nullptr;
      }
      if (const char* wrong = step(in, *at)) return wrong;
      if (stack_.depth > kStack) return "it needs more than 64 stack entries";
      if (effect_of(in.code) == Effect::kJump) reach = std::max(reach, *at + in.c);
    }
  }

 private:
  struct Target {
    uint32_t at;
    Stack stack;
  };

  const char* step(const Instruction& in, uint32_t at) {
    switch (effect_of(in.code)) {
      case Effect::kLoad: return load_type(in);
      case Effect::kUnary: return take(1, Type::kInteger, Type::kInteger);
      case Effect::kBinary: return in.code == kPow ? exponent(at) : take_integers();
      case Effect::kReals: return take(2, Type::kReal, Type::kInteger);
      case Effect::kRelation: {
        const bool names = in.code <= kNe && stack_.depth != 0 && stack_.top() == Type::kName;
        return take(2, names ? Type::kName : Type::kInteger, Type::kInteger);
      }
      case Effect::kMember: return member(in);
      case Effect::kJump: break;
      case Effect::kNone: return "there is no such opcode";
    }
    if (stack_.depth == 0 || stack_.top() != Type::kInteger) return "it jumps on no truth value";
    if (in.c < 1 || in.c > kLongest) return "a jump does not go forward";
    if (targets_.size() == kMostJumps) return "it has more than 4096 jumps";
    targets_.push_back({at + in.c, stack_});
    stack_.pop();
    return nullptr;
  }

  const char* take_integers() { return take(2, Type::kInteger, Type::kInteger); }

  const char* take(int count, Type wanted, Type result) {
    if (stack_.depth < count) return "the stack is empty";
    while (count-- > 0)
      if (stack_.pop() != wanted) return "an operand has another type";
    stack_.push(result);
    return nullptr;
  }

  // The writer knows exponents only as constants; so it stays true that none is negative.
  const char* exponent(uint32_t at) {
    const Instruction* before = stack_.depth < 2 ? nullptr : &catalog_.code[at - 1];
    if (before == nullptr || before->code != kInt || catalog_.constants[before->c] < 0)
      return "an exponent is no constant from 0";
    for (const Target& target : targets_)
      if (target.at == at) return "a jump leads to an exponent";
    return take_integers();
  }

  const char* member(const Instruction& in) {
    if (stack_.depth == 0 || stack_.top() == Type::kReal) return "an operand has another type";
    if (static_cast<uint64_t>(in.c) + in.b > catalog_.constants.size())
      return "its constants lie beyond the last";
    stack_.pop();
    stack_.push(Type::kInteger);
    return nullptr;
  }

  // A tensor, an integer or a float must be where the instruction looks for one.
  const char* slot(uint32_t number, bool tensor, bool real) const {
    if (number >= op_.arg_count) return "the op has no such argument";
    const uint8_t kind = catalog_.op_args[op_.args + number].kind;
    if ((kind == kTensor) != tensor || (!tensor && is_real(kind) != real))
      return "the argument is of another kind";
    return nullptr;
  }

  const char* load_type(const Instruction& in) {
    Type type = Type::kInteger;
    const char* wrong = nullptr;
    switch (in.code) {
      case kInt:
      case kFloat:
        if (in.c >= catalog_.constants.size()) return "its constant lies beyond the last";
        if (in.code == kFloat) type = Type::kReal;
        break;
      case kWord:
        if (in.c >= catalog_.string_count()) return "its name lies beyond the last string";
        type = Type::kName;
        break;
      case kScalar: wrong = slot(in.a, false, false); break;
      case kRealScalar:
        wrong = slot(in.a, false, true);
        type = Type::kReal;
        break;
      case kSignature:
        if (in.b > 3) return "the signature has no such part";
        if (in.b < 3) type = Type::kName;
        break;
      case kWorkspace: break;
      case kDtype:
      case kLayout: type = Type::kName; [[fallthrough]];
      default:
        wrong = slot(in.a, true, false);
        if (in.code == kDisjoint && wrong == nullptr) wrong = slot(in.b, true, false);
    }
    stack_.push(type);
    return wrong;
  }

  static constexpr size_t kMostJumps = 4096;

  const Catalog& catalog_;
  const OpRecord& op_;
  Stack stack_;
  std::vector<Target> targets_;
};

}  // namespace

const char* check_program(const Catalog& catalog, const OpRecord& op, uint32_t start, Type* result,
                          uint32_t* at) {
  return ProgramChecker(catalog, op).check(start, result, at);
}

Int128 last_byte(const netra_tensor& tensor) {
  Int128 first, last;
  reach(tensor, &first, &last);
  return last;
}

Outcome run_program(const Catalog& catalog, uint32_t start, const netra_call& call,
                    uint64_t workspace, Value* value) {
  Value stack[kStack + 1];  // one below the first entry
  Value* top = stack;
  for (const Instruction* at = catalog.code.data() + start;; ++at) {
    const Instruction in = *at;
    switch (effect_of(in.code)) {
      case Effect::kLoad: {
        const Outcome outcome = load(catalog, in, call, workspace, ++top);
        if (outcome != Outcome::kValue) return outcome;
        break;
      }
      case Effect::kUnary: {
        const Int128 x = top->integer;
        if (in.code == kNeg && x == kLowest) return Outcome::kOverflow;
        const bool pow2 = x > 0 && (x & (x - 1)) == 0;
        top->integer = in.code == kNeg ? -x : in.code == kNot ? x == 0 : pow2;
        break;
      }
      case Effect::kBinary: {
        --top;
        const Outcome outcome = combine(in.code, top[0].integer, top[1].integer, &top->integer);
        if (outcome != Outcome::kValue) return outcome;
        break;
      }
      case Effect::kRelation:
        --top;
        top->integer = compare(in.code - kEq, top[0].integer, top[1].integer);
        break;
      case Effect::kReals:
        --top;
        top->integer = compare(in.code - kFEq, top[0].real, top[1].real);
        break;
      case Effect::kMember: top->integer = among(catalog, in, top->integer); break;
      case Effect::kJump:
        if ((top->integer != 0) == (in.code == kOr))
          at += in.c - 1;
        else
          --top;
        break;
      case Effect::kNone: *value = *top; return Outcome::kValue;  // END: all others were checked
    }
  }
}

}  // namespace netra::bridge
