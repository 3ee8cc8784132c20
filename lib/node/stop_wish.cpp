#include "node/stop_wish.hpp"

#include <memory>
#include <utility>

#include "base/error.hpp"

namespace taas::node {

void StopWish::tell(const HeldPath& file) {
  constexpr auto kSlowDisk = std::chrono::milliseconds(500);
  telling_ = true;
  held_until_.set(steady_now() + kSlowDisk);
  auto made = std::make_shared<Result<>>();
  disk_.run([=] { *made = file.folder.replace(file.name, "", 0644); },
            [=, this] {
              if (!*made) remark_("cannot tell ranks to write a checkpoint: " + made->error().message);
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
