#pragma once

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
