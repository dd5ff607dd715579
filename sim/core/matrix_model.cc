#include "matrix_model.h"

#include <cstdlib>

namespace netra {
namespace {

constexpr const char* kNames[] = {"fma_chain", "tr_fdpa", "gfx11_dot2", "exact"};
constexpr int kUnknown = 4;

int chosen() {
  const char* text = std::getenv("NETRA_SIM_MATRIX_MODEL");
  if (!text || !*text) return -1;
  for (int k = 0; k < 4; ++k)
    if (std::string(text) == kNames[k]) return k;
  return kUnknown;
}
int model() {
  static const int m = chosen();
  return m;
}

}  // namespace

MatrixModel matrix_model(bool gfx11) {
  if (model() >= 0 && model() != kUnknown) return static_cast<MatrixModel>(model());
  return gfx11 ? MatrixModel::gfx11_dot2 : MatrixModel::fma_chain;
}

const std::string& matrix_model_error() {
  static const std::string error =
      model() != kUnknown ? "" : std::string("NETRA_SIM_MATRIX_MODEL: '") + std::getenv("NETRA_SIM_MATRIX_MODEL") +
                                     "' is none of fma_chain, tr_fdpa, gfx11_dot2, exact";
  return error;
}

const char* matrix_model_name(MatrixModel model) { return kNames[static_cast<int>(model)]; }

}  // namespace netra
