#pragma once

#include <memory>
#include <string>

#include "tensor_module.hpp"

namespace taas::train {

/// What --model names.
std::shared_ptr<TensorModule> make_model(const std::string& name);

}  // namespace taas::train
