#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace taas {

/// "example 3 of 'train'".
std::string place_in(std::string_view loader, const std::string& what);

/// To be called where the dataset's code has thrown, `where` says in what: DataErrors go on as they are. Memory that is
/// not there is told apart as std::bad_alloc: another worker may have it.
[[noreturn]] void rethrow_from(const std::string& where);

/// A tensor of a batch, contiguous and without gradients. Throws DataError for one that is not on the CPU, or not
/// strided.
at::Tensor presentable(const at::Tensor& tensor, const std::string& where);

}  // namespace taas
