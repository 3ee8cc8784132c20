#pragma once

#include <stdexcept>

namespace taas {

/// What the training library throws; catch this to catch all of it. The text is one line that names the value at fault.
/// (The launcher's `taas::Error` is a value, not an exception: hence the name.)
class Exception : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The environment or the options of a run do not fit together: RANK is missing, two ranks chose different backends, …
class ConfigError : public Exception {
  using Exception::Exception;
};

/// An argument that no call of this function accepts: a tensor of the wrong shape, a rank outside the group, …
class InvalidArgument : public Exception {
  using Exception::Exception;
};

/// Other ranks could not be reached, went away, or did not answer in time.
class CommunicationError : public Exception {
  using Exception::Exception;
};

/// A checkpoint could not be written, or does not fit the model that is to be loaded from it.
class CheckpointError : public Exception {
  using Exception::Exception;
};

}  // namespace taas
