#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "agenda.hpp"

namespace taas::sim {

/// One direction between a node and the coordinator, for all connections that use it.
struct Path {
  Duration delay{};
  bool cut = false;  ///< silently: what is sent waits, as TCP sends it again
};

/// One direction of one connection: reliable and in order, as TCP is.
class Pipe : public std::enable_shared_from_this<Pipe> {
 public:
  Pipe(Agenda& agenda, const Path& path) : agenda_(agenda), path_(path) {}

  void send(std::function<void()> arrive) {
    last_ = std::max(last_, agenda_.now() + path_.delay);
    waiting_.push_back({last_, std::move(arrive)});
    agenda_.at(last_, [self = shared_from_this()] { self->pump(); });
  }
  /// Nothing of it arrives any more, as where a firewall has forgotten it.
  void die() { next_try_ = Instant::max(); }
  /// The path is open again, and TCP sends again what it has lost after this time: what comes later waits as well.
  void retry(Duration pause) {
    if (next_try_ == Instant::max()) return;
    next_try_ = agenda_.now() + pause + path_.delay;
    agenda_.at(next_try_, [self = shared_from_this()] { self->pump(); });
  }

 private:
  struct Message {
    Instant due;
    std::function<void()> arrive;
  };

  void pump() {
    while (!path_.cut && agenda_.now() >= next_try_ && !waiting_.empty() && waiting_.front().due <= agenda_.now()) {
      auto message = std::move(waiting_.front());
      waiting_.pop_front();
      message.arrive();
    }
  }

  Agenda& agenda_;
  const Path& path_;
  std::deque<Message> waiting_;
  Instant last_{};
  Instant next_try_{};
};

}  // namespace taas::sim
