// SMFMAC: D += A * B for gfx950, where of every four consecutive k only two elements of A are held.
//
// Element c of a row of A, counted over its lanes, stands at k = 4 (c / 2) + its index. An index has
// two bits, element e's of a lane from bit 2 e of the set that ABID picks (CBSZ not 0: the first). B
// has all elements: consecutive k from the lowest bit in four registers, in eight of them two such
// runs half of K apart, as probed on an MI350 (docs/simulator.md). What is left out of A is no
// product: an infinity in B meets no zero there.
#include <algorithm>
#include <cstring>
#include <string>

#include "chain.h"
#include "dot_models.h"
#include "rows.h"

namespace netra::NETRA_HOST_NS {
namespace {

struct Shape {
  const char* name;
  uint8_t m, k;
  Elem a, b;
};
#define NETRA_EIGHT(M, K)                                                                      \
  {"v_smfmac_f32_" #M "x" #M "x" #K "_fp8_fp8", M, K, Elem::fp8, Elem::fp8},                   \
  {"v_smfmac_f32_" #M "x" #M "x" #K "_fp8_bf8", M, K, Elem::fp8, Elem::bf8},                   \
  {"v_smfmac_f32_" #M "x" #M "x" #K "_bf8_fp8", M, K, Elem::bf8, Elem::fp8},                   \
  {"v_smfmac_f32_" #M "x" #M "x" #K "_bf8_bf8", M, K, Elem::bf8, Elem::bf8},                   \
  {"v_smfmac_i32_" #M "x" #M "x" #K "_i8", M, K, Elem::i8, Elem::i8},
#define NETRA_SIXTEEN(M, K)                                                                    \
  {"v_smfmac_f32_" #M "x" #M "x" #K "_f16", M, K, Elem::f16, Elem::f16},                       \
  {"v_smfmac_f32_" #M "x" #M "x" #K "_bf16", M, K, Elem::bf16, Elem::bf16},
constexpr Shape kShapes[] = {
    NETRA_SIXTEEN(16, 32) NETRA_SIXTEEN(32, 16) NETRA_SIXTEEN(16, 64) NETRA_SIXTEEN(32, 32)
    NETRA_EIGHT(16, 64) NETRA_EIGHT(32, 32) NETRA_EIGHT(16, 128) NETRA_EIGHT(32, 64)
};
constexpr int kMost = 64;   // elements of A in a row of the largest shape

uint32_t element(const Wave& w, const Operand& o, Elem e, int n, int lane) {
  const int at = n * bits_of(e);
  return w.row(o.index + static_cast<uint32_t>(at / 32))[lane] >> at % 32;
}

// Row r of A: the lane and the register element of each of its elements, and those of B that it meets,
// by the first lane of a group.
struct Places {
  int lane[kMost], element[kMost];
};
bool places(Wave& w, const Insn& i, const Shape& s, int row, Places* p) {
  const int groups = 64 / s.m, held = s.m * s.k / 128, width = 2 * held;
  const int set = i.cbsz ? 0 : i.abid;
  const int run = std::min(2 * held, 128 / bits_of(s.b)), runs = 2 * held / run;
  for (int g = 0; g < groups; ++g) {
    const int lane = g * s.m + row;
    const uint32_t index = w.row(i.op[3].index)[lane] >> (width * set % 32);
    for (int e = 0; e < held; ++e) {
      const int at = static_cast<int>(index >> 2 * e & 3);
      if (e % 2 && at <= static_cast<int>(index >> (2 * e - 2) & 3)) {
        fault(w, i, 719, "lane " + std::to_string(lane) + ": the indices of elements " +
                             std::to_string(e - 1) + " and " + std::to_string(e) +
                             " do not rise, which is not defined");
        return false;
      }
      const int c = g * held + e, k = 4 * (c / 2) + at, in_run = k % (s.k / runs);
      p->lane[c] = in_run / run * s.m;
      p->element[c] = k / (s.k / runs) * run + in_run % run;
    }
  }
  return true;
}

// Row 8 (v / 4) + 4 (lane / 32) + v % 4 of 32, 4 (lane / 16) + v of 16.
int row_of(const Shape& s, int v, int lane) {
  return s.m == 32 ? 8 * (v / 4) + 4 * (lane / 32) + v % 4 : 4 * (lane / 16) + v;
}

void smfmac(Wave& w, const Insn& i) {
  const Shape& s = kShapes[i.row->data];
  const int held = s.m * s.k / 128, sets = 32 / (2 * held);
  if (i.blgp) return fault(w, i, 719, "blgp has no meaning for a sparse matrix");
  if (!i.cbsz && i.abid >= sets)
    return fault(w, i, 719, "abid names one of " + std::to_string(sets) + " sets of indices here");
  const MatrixModel model = matrix_model(w.gfx11);
  const int count = 64 / s.m * held, out = s.m * s.m / 64;
  alignas(64) uint32_t d[16][64];
  Places p[32];
  for (int r = 0; r < s.m; ++r)
    if (!places(w, i, s, r, &p[r])) return;
  for (int v = 0; v < out; ++v)
    for (int l = 0; l < 64; ++l) {
      const int r = row_of(s, v, l), column = l % s.m;
      const uint32_t c = w.row(i.op[0].index + static_cast<uint32_t>(v))[l];
      const auto code = [&](bool of_a, int n) {
        return of_a ? element(w, i.op[1], s.a, n % held, n / held * s.m + r)
                    : element(w, i.op[2], s.b, p[r].element[n], p[r].lane[n] + column);
      };
      if (s.a == Elem::i8) {
        uint32_t sum = c;
        for (int n = 0; n < count; ++n)
          sum += static_cast<uint32_t>(static_cast<int8_t>(code(true, n)) * static_cast<int8_t>(code(false, n)));
        d[v][l] = sum;
        continue;
      }
      float a[kMost], b[kMost], sum = as_f32(c);
      for (int n = 0; n < count; ++n) a[n] = element_f32(s.a, code(true, n)), b[n] = element_f32(s.b, code(false, n));
      if (model == MatrixModel::fma_chain)
        for (int n = 0; n < count; ++n) sum = chain_step(a[n], b[n], sum);
      else
        sum = dot_model(model, s.a, a, b, count, sum);
      d[v][l] = f32_bits(sum);
    }
  for (int v = 0; v < out; ++v) std::memcpy(w.row(i.op[0].index + static_cast<uint32_t>(v)), d[v], sizeof d[v]);
}

constexpr Row shape_row(uint32_t index) {
  const Shape& s = kShapes[index];
  Row r;
  r.name = s.name;
  r.cls = Class::mfma;
  r.archs = kGfx950;
  r.execute = &smfmac;
  r.flags = kIgnoresExec | (s.a == Elem::i8 ? 0u : kModel);
  r.mods = kModBroadcast;
  r.data = index;
  const auto registers = [&](int elements, Elem e) { return static_cast<uint8_t>(elements * bits_of(e) / 64 / 32); };
  r.slot[r.slots++] = {Type::wide, kReadWrite, static_cast<uint8_t>(s.m * s.m / 64)};
  r.slot[r.slots++] = {Type::wide, kRead, registers(s.m * s.k / 2, s.a)};
  r.slot[r.slots++] = {Type::wide, kRead, registers(s.m * s.k, s.b)};
  r.slot[r.slots++] = {Type::b32, kRead, 0};
  return r;
}

constexpr size_t kCount = sizeof kShapes / sizeof *kShapes;
struct Table {
  Row rows[kCount];
  constexpr Table() : rows{} {
    for (uint32_t k = 0; k < kCount; ++k) rows[k] = shape_row(k);
  }
};
constexpr Table kTable;

}  // namespace

RowSpan smfmac_rows() { return {kTable.rows, kCount}; }

}  // namespace netra::NETRA_HOST_NS
