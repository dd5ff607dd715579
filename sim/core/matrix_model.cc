#include "matrix_model.h"

#include <cstdio>
#include <cstdlib>

namespace netra {
namespace {

constexpr const char* kNames[] = {"fma_chain", "tr_fdpa", "gfx11_dot2", "exact"};

int chosen() {
  const char* text = std::getenv("NETRA_SIM_MATRIX_MODEL");
  if (!text || !*text) return -1;
  for (int k = 0; k < 4; ++k)
    if (std::string(text) == kNames[k]) return k;
  std::fprintf(stderr, "NETRA_SIM_MATRIX_MODEL: '%s' is none of fma_chain, tr_fdpa, gfx11_dot2, exact\n", text);
  return -1;
}

}  // namespace

MatrixModel matrix_model(bool gfx11) {
  static const int model = chosen();
  if (model >= 0) return static_cast<MatrixModel>(model);
  return gfx11 ? MatrixModel::gfx11_dot2 : MatrixModel::fma_chain;
}

const char* matrix_model_name(MatrixModel model) { return kNames[static_cast<int>(model)]; }

}  // namespace netra
