#include "storage/publishing/offers.hpp"

#include <algorithm>

namespace taas::storage {
namespace {

constexpr Duration kUncertainFor = std::chrono::milliseconds(5);  // a process ends in about that time
constexpr Duration kRaisedAgain = std::chrono::seconds(1);
constexpr int kMostHalvings = 10;

}  // namespace

void Offers::begin() { *this = Offers(); }

Duration Offers::hold_of(const std::string& name) const {
  auto known = rewritten_.find(name);
  const int times = known == rewritten_.end() ? 0 : std::min(known->second, kMostHalvings);
  return std::max(kHold / (1 << times), kLeastHold);
}

void Offers::closed(const std::string& name, Instant now) {
  if (killed_) return;
  if (auto open = open_at_stop_.find(name); open != open_at_stop_.end() && open->second > 0) {
    --open->second;
    cut_off_[name] = now;
    return;
  }
  cut_off_.erase(name);
  auto known = offers_.find(name);
  if (known != offers_.end() && !known->second.found) ++rewritten_[name];
  offers_.insert_or_assign(name, Offer{now, stopped_.has_value()});
}

void Offers::found(const std::string& name, Instant now) {
  auto open = open_at_stop_.find(name);
  if (killed_ || (open != open_at_stop_.end() && open->second > 0)) return;
  offers_.try_emplace(name, Offer{now, stopped_.has_value(), true});
}

void Offers::placed(const std::string& name) {
  offers_.erase(name);
  cut_off_.erase(name);
  rewritten_.erase(name);
  open_at_stop_.erase(name);
}

void Offers::stop(const Stop& stop, Instant now) {
  if (!stopped_) {
    stopped_ = now;
    open_at_stop_ = stop.open;
    for (const auto& [name, count] : stop.open) cut_off_.insert_or_assign(name, Instant::max());
  }
  killed_ = killed_ || stop.kills;
}

std::vector<std::string> Offers::take(WritersState writers, Instant now) {
  std::vector<std::string> whole;
  for (auto offer = offers_.begin(); offer != offers_.end();) {
    const auto& [name, told] = *offer;
    const bool counts = told.after_stop
                            ? writers != WritersState::kUncertain && writers != WritersState::kKilled
                            : !stopped_ && writers == WritersState::kWell && now >= told.closed + hold_of(name);
    if (!counts) {
      ++offer;
      continue;
    }
    rewritten_.erase(name);
    whole.push_back(name);
    offer = offers_.erase(offer);
  }
  return whole;
}

std::optional<Instant> Offers::ask_again(WritersState writers, Instant now) const {
  const bool has_failed = writers == WritersState::kBadly || writers == WritersState::kKilled;
  if (has_failed) return std::nullopt;  // what happens next is told
  const auto soonest = now + (writers == WritersState::kRaised ? kRaisedAgain : kUncertainFor);
  std::optional<Instant> first;
  for (const auto& [name, told] : offers_) {
    if (stopped_ && !told.after_stop) continue;  // nothing but a good end says more of it
    const auto when = told.after_stop ? soonest : std::max(told.closed + hold_of(name), soonest);
    first = first ? std::min(*first, when) : when;
  }
  return first;
}

bool Offers::was_cut_off(const std::string& name) const {
  auto found = cut_off_.find(name);
  return found != cut_off_.end() && (found->second == Instant::max() || found->second < *stopped_ + kUnwinds);
}

}  // namespace taas::storage
