#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace taas::store {

/// How many bytes one server may hold for all of its clients together: values, keys, requests that are not whole yet
/// and replies that are not read yet. Not thread-safe.
class Budget {
 public:
  explicit Budget(std::size_t most) : most_(most) {}

  [[nodiscard]] std::size_t most() const { return most_; }
  [[nodiscard]] std::size_t held() const { return held_; }
  [[nodiscard]] bool is_exceeded() const { return held_ > most_; }
  [[nodiscard]] bool has_room(std::size_t bytes) const { return held_ <= most_ && bytes <= most_ - held_; }

 private:
  friend class Share;
  std::size_t most_;
  std::size_t held_ = 0;
};

/// What one part of the server holds of the budget, given back with the part.
class Share {
 public:
  explicit Share(std::shared_ptr<Budget> budget, std::size_t bytes = 0) : budget_(std::move(budget)) { set(bytes); }
  ~Share() {
    if (budget_) budget_->held_ -= bytes_;
  }
  Share(Share&& other) noexcept : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Share& operator=(Share&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  [[nodiscard]] const std::shared_ptr<Budget>& budget() const { return budget_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  void set(std::size_t bytes) {
    budget_->held_ += bytes;
    budget_->held_ -= std::exchange(bytes_, bytes);
  }

 private:
  std::shared_ptr<Budget> budget_;
  std::size_t bytes_ = 0;
};

}  // namespace taas::store
