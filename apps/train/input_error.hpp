#pragma once

#include <stdexcept>

namespace taas::train {

/// The user gave something that cannot be used: the message is one line that names it and the way out; exit code 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace taas::train
