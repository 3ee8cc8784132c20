#pragma once

#include "base/fd.hpp"

namespace taas {

/// A terminal in the place of a pipe: a program that writes to it shows its lines as it prints them, and nothing is
/// left in its buffer when it is killed. Bytes come as they were written. It is as large as the terminal `like` is now,
/// and nobody's controlling terminal. Fails where the system has none to give.
Result<Pipe> make_terminal(int like);

}  // namespace taas
