// Named models of the f32 adder inside matrix instructions. What AMD's silicon does on gfx950 is not
// public; a result of random data is therefore a result under a model, and says which.
#pragma once

#include <cstdint>
#include <string>

namespace netra {

enum class MatrixModel : uint8_t {
  fma_chain,   // acc = fma(a[k], b[k], acc), k ascending: default on gfx950
  tr_fdpa,     // CDNA3 as measured (MMA-Sim): groups of products truncated to a common exponent
  gfx11_dot2,  // RDNA3 as measured: pairs of products on a grid, default on gfx1151
  exact,       // the exact sum, rounded once
};

// NETRA_SIM_MATRIX_MODEL, or the target's default.
MatrixModel matrix_model(bool gfx11);
// What is wrong with the variable, which is then an error of every launch; empty when nothing is.
const std::string& matrix_model_error();
const char* matrix_model_name(MatrixModel model);

}  // namespace netra
