#pragma once

#include <ATen/core/ivalue.h>

#include <string>

namespace taas {

/// A dictionary that holds anything.
c10::impl::GenericDict plain_dict();

/// The bytes of a file that torch.load(…, weights_only=True) reads. torch's own pickle_save notes the TorchScript type
/// of every list and dictionary, which weights_only refuses.
std::string pickle(const c10::IValue& value);

/// Reads what pickle() or Python's torch.save made; throws c10::Error or another std::exception when it is neither.
c10::IValue unpickle(const std::string& bytes);

}  // namespace taas
