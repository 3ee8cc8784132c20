#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "storage/publishing/publish_file.hpp"

namespace taas::storage {

/// What waits to be published: one place for each name, with its newest content.
class PublishQueue {
 public:
  void add(Publication publication) {
    auto name = publication.name;
    if (waiting_.insert_or_assign(name, std::move(publication)).second) order_.push_back(std::move(name));
  }

  [[nodiscard]] std::size_t size() const { return waiting_.size(); }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [name, publication] : waiting_) sum += static_cast<std::uint64_t>(publication.seen.size);
    return sum;
  }

  /// The one whose name has waited longest; nothing: none waits.
  [[nodiscard]] std::optional<Publication> take() {
    if (order_.empty()) return std::nullopt;
    auto next = std::move(waiting_.extract(order_.front()).mapped());
    order_.pop_front();
    return next;
  }

 private:
  std::map<std::string, Publication> waiting_;  // by name
  std::deque<std::string> order_;
};

}  // namespace taas::storage
