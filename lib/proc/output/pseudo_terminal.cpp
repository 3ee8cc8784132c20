#include "proc/output/pseudo_terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <cerrno>
#include <cstdlib>

namespace taas {

Result<Pipe> make_pseudo_terminal(TerminalSize size) {
  Fd ours(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!ours || ::unlockpt(ours.get()) != 0) return system_error("make a pseudo terminal", errno);
  Fd theirs(::ioctl(ours.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!theirs) return system_error("open a pseudo terminal", errno);
  termios mode{};
  if (::tcgetattr(theirs.get(), &mode) != 0) return system_error("set up a pseudo terminal", errno);
  ::cfmakeraw(&mode);
  if (::tcsetattr(theirs.get(), TCSANOW, &mode) != 0) return system_error("set up a pseudo terminal", errno);
  resize_terminal(theirs, size);
  return Pipe{std::move(ours), std::move(theirs)};
}

void resize_terminal(const Fd& end, TerminalSize size) {
  winsize wanted{};
  wanted.ws_col = static_cast<unsigned short>(size.columns);
  wanted.ws_row = static_cast<unsigned short>(size.rows);
  ::ioctl(end.get(), TIOCSWINSZ, &wanted);
}

}  // namespace taas
