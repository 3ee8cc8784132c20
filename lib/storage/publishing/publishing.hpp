#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/publishing/publisher.hpp"

namespace taas::storage {

/// The work of a Publisher, which calls it on a thread that may wait for disks: looks at what is staged, and has whole
/// files copied by one more thread. All callbacks come in the loop that it is given.
class Publishing {
 public:
  /// `on_name` is called for each name that is published for the first time.
  Publishing(boost::asio::io_context& io, PublisherOptions options, std::function<void()> on_name);
  ~Publishing();
  Publishing(const Publishing&) = delete;
  Publishing& operator=(const Publishing&) = delete;

  /// At once, or after PublisherOptions::watch_after.
  void start_watching();
  void publish_to(HeldFolder files);
  void share(Sharing sharing);
  void confirm(std::uint64_t number, bool well);
  /// From any thread, as Publisher::stop(); catch_up_with_stops() follows on this one.
  void stop(Stop stop);
  void catch_up_with_stops();
  /// From any thread.
  [[nodiscard]] bool has_seen_files() const;
  void settle(std::function<void(std::string error, std::vector<Doubtful> doubtful)> on_done);
  void abandon(std::function<void(std::vector<Doubtful> doubtful)> on_done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas::storage
