#include "node/stop_wish.hpp"

#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas::node {

void StopWish::tell(const std::string& path) {
  constexpr auto kSlowDisk = std::chrono::milliseconds(500);
  telling_ = true;
  held_until_.set(steady_now() + kSlowDisk);
  auto failure = std::make_shared<int>(0);
  disk_.run(
      [=] {
        Fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        if (!made) *failure = errno;
      },
      [=, this] {
        if (*failure != 0) {
          remark_(system_error("cannot tell ranks to write a checkpoint by " + path, *failure).message);
        }
        let_go();
      });
}

void StopWish::pass(const run::SignalRanks& signal) { telling_ ? held_.push_back(signal) : send_(signal); }

void StopWish::let_go() {
  telling_ = false;
  held_until_.clear();
  for (const auto& signal : std::exchange(held_, {})) send_(signal);
}

}  // namespace taas::node
