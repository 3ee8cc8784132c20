#include "training/hooks/orthogonalize.hpp"

#include <ATen/ATen.h>

namespace taas {
namespace {

/// The operations of torch's _orthogonalize_gram_schmidt, in their order.
void gram_schmidt(const at::Tensor& matrices, double epsilon) {
  const auto columns = matrices.size(2);
  for (std::int64_t i = 0; i < columns; ++i) {
    auto column = matrices.slice(2, i, i + 1);
    auto norm = at::linalg_vector_norm(column, 2, at::IntArrayRef{1}, /*keepdim=*/true);
    column.div_(epsilon == 0 ? norm : norm + epsilon);
    if (i + 1 == columns) break;
    auto rest = matrices.slice(2, i + 1);
    rest.sub_(at::sum(column * rest, at::IntArrayRef{1}, /*keepdim=*/true) * column);
  }
}

}  // namespace

void orthogonalize(const at::Tensor& matrices, double epsilon) {
  const auto type = matrices.scalar_type();
  if (matrices.size(2) <= 2 || type == at::kHalf || type == at::kBFloat16) return gram_schmidt(matrices, epsilon);
  const auto columns = matrices.size(2);
  auto q = matrices;
  auto r = at::empty({matrices.size(0), columns, columns}, matrices.options());
  at::linalg_qr_out(q, r, matrices);
}

}  // namespace taas
