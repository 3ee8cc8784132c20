#pragma once

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

/// A pseudo terminal in a pipe's place: what is written to one end, and finds a terminal of that size there, is read at
/// the other one byte for byte. It is nobody's controlling terminal. Its end is read as EIO.
Result<Pipe> make_pseudo_terminal(TerminalSize size);

/// At either end. Who is to know of it has to be told by a signal.
void resize_terminal(const Fd& end, TerminalSize size);

}  // namespace taas
