#include "training/agreement/skip_agreement.hpp"

#include <algorithm>
#include <exception>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "training/backend/c10_error.hpp"
#include "training/group/rendezvous.hpp"

namespace taas {
namespace {

constexpr const char* kStore = "the store of the run";
constexpr const char* kHas = "has";
constexpr const char* kLacks = "lacks";
constexpr const char* kEnded = "ended";

}  // namespace

SkipAgreement::SkipAgreement(c10::intrusive_ptr<c10d::Store> store, std::size_t rank, std::size_t world_size,
                             std::chrono::milliseconds timeout)
    : store_(std::move(store)), rank_(rank), timeout_(timeout) {
  for (std::size_t other = 0; other < world_size; ++other) {
    if (other != rank) others_.push_back(other);
  }
}

SkipAgreement::~SkipAgreement() {
  try {
    end();
  } catch (const std::exception&) {  // the store is gone, and the run with it
  }
}

std::vector<std::size_t> SkipAgreement::lacking(bool this_rank) {
  say(this_rank ? kLacks : kHas);
  std::vector<std::size_t> lack, still;
  if (this_rank) lack.push_back(rank_);
  const auto states = said_by_others();
  for (std::size_t i = 0; i < others_.size(); ++i) {
    if (states[i] == kLacks) lack.push_back(others_[i]);
    if (states[i] != kEnded) still.push_back(others_[i]);
  }
  others_ = std::move(still);
  // Whoever has spoken of this turn has read all that was said of the one before.
  if (turn_ > 0) communicating(kStore, [&] { store_->deleteKey(key(turn_ - 1, rank_)); });
  ++turn_;
  std::sort(lack.begin(), lack.end());
  return lack;
}

void SkipAgreement::end() {
  if (std::exchange(ended_, true)) return;
  say(kEnded);
}

std::string SkipAgreement::key(std::uint64_t turn, std::size_t rank) const {
  return std::to_string(turn) + "/" + std::to_string(rank);
}

void SkipAgreement::say(const char* state) {
  communicating(kStore, [&] { store_->set(key(turn_, rank_), std::string(state)); });
}

std::vector<std::string> SkipAgreement::said_by_others() {
  if (others_.empty()) return {};
  std::vector<std::string> keys, states;
  for (auto rank : others_) keys.push_back(key(turn_, rank));
  try {
    store_->wait(keys, timeout_);
  } catch (const std::exception&) {
    report_silent(keys);
  }
  communicating(kStore, [&] {
    for (const auto& bytes : store_->multiGet(keys)) states.emplace_back(bytes.begin(), bytes.end());
  });
  return states;
}

void SkipAgreement::report_silent(const std::vector<std::string>& keys) {
  std::vector<int> silent;
  communicating(kStore, [&] {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!store_->check({keys[i]})) silent.push_back(static_cast<int>(others_[i]));
    }
  });
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout_).count();
  throw CommunicationError(
      "ranks have to agree on what --data-on-error skip leaves out, but nothing came from rank " + list_ranks(silent) +
      " for batch " + std::to_string(turn_) + " within " + std::to_string(seconds) +
      " s: let all ranks loop over this loader, or set DataLoaderOptions::agree_on_skips to false");
}

c10::intrusive_ptr<c10d::Store> connect_loader_store(const std::string& loader, std::uint64_t loop,
                                                     std::chrono::milliseconds timeout) {
  auto store = connect_client(read_environment(process_variable), timeout);
  return c10::make_intrusive<c10d::PrefixStore>("loader/" + loader + "/" + std::to_string(loop), store);
}

}  // namespace taas
