#include "training/making/dataset_code.hpp"

#include <new>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"

namespace taas {

std::string place_in(std::string_view loader, const std::string& what) {
  return what + " of '" + std::string(loader) + "'";
}

[[noreturn]] void rethrow_from(const std::string& where) {
  try {
    throw;
  } catch (const DataError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    auto text = one_line(error);
    if (text.find("DefaultCPUAllocator") != std::string::npos) throw std::bad_alloc();
    throw DataError(where + ": " + text);
  }
}

at::Tensor presentable(const at::Tensor& tensor, const std::string& where) {
  bool good = tensor.defined() && tensor.device().is_cpu() && tensor.layout() == at::kStrided;
  if (!good) throw DataError(where + ": a batch has tensors on the CPU alone, and strided ones");
  return tensor.detach().contiguous();
}

}  // namespace taas
