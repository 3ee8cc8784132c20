#pragma once

#include <ATen/core/Tensor.h>

namespace taas {

/// Makes the columns of each matrix orthonormal, in place: `matrices` (count, rows, columns) with columns <= rows.
/// Gram-Schmidt for two columns and for 16 bit numbers, with `epsilon` added to each norm; QR for others.
void orthogonalize(const at::Tensor& matrices, double epsilon);

}  // namespace taas
