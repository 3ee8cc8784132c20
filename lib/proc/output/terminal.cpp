#include "proc/output/terminal.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <cerrno>

namespace taas {

Result<Pipe> make_terminal(int like) {
  Fd reader(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!reader || ::unlockpt(reader.get()) != 0) return system_error("cannot create a terminal", errno);
  // By its path it could be found in another place, where /dev is not the one that it belongs to.
  Fd writer(::ioctl(reader.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios modes{};
  if (!writer || ::tcgetattr(writer.get(), &modes) != 0) return system_error("cannot open a terminal", errno);
  ::cfmakeraw(&modes);
  if (::tcsetattr(writer.get(), TCSANOW, &modes) != 0) return system_error("cannot set up a terminal", errno);
  winsize size{};
  if (::ioctl(like, TIOCGWINSZ, &size) == 0) ::ioctl(writer.get(), TIOCSWINSZ, &size);
  return Pipe{std::move(reader), std::move(writer)};
}

}  // namespace taas
