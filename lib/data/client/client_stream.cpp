#include "data/client/client_stream.hpp"

#include <utility>

namespace taas::data {

std::size_t payload_of(const Outcome& outcome) {
  const auto* batch = std::get_if<Batch>(&outcome);
  return batch ? batch->payload.size() : 0;
}

std::uint64_t ClientStream::submit(std::string payload) {
  payloads_.emplace(submitted_, std::make_shared<const std::string>(std::move(payload)));
  return submitted_++;
}

const std::shared_ptr<const std::string>& ClientStream::payload(std::uint64_t number) const {
  return payloads_.at(number);
}

bool ClientStream::note_sent(std::uint64_t number) {
  const bool first = sent_.insert(number).second;
  if (!first) ++statistics_.hedged;
  return first;
}

std::string ClientStream::why_returned(std::uint64_t number) const {
  const auto why = returned_.find(number);
  return why == returned_.end() ? "no data worker can make it" : why->second;
}

void ClientStream::keep(std::uint64_t number, Outcome outcome) {
  statistics_.buffered_bytes += payload_of(outcome);
  payloads_.erase(number);
  sent_.erase(number);
  returned_.erase(number);
  kept_.emplace(number, std::move(outcome));
  if (number == taken_) wake();
}

bool ClientStream::wait(std::unique_lock<std::mutex>& lock, Instant until) {
  return changed_.wait_until(lock, until) == std::cv_status::no_timeout;
}

Outcome ClientStream::take(Statistics& totals) {
  Outcome outcome = std::move(kept_.extract(taken_).mapped());
  waits_ = false;
  ++taken_;
  if (!std::holds_alternative<Batch>(outcome)) return outcome;
  const auto bytes = payload_of(outcome);
  statistics_.buffered_bytes -= bytes;
  for (auto* count : {&statistics_, &totals}) {
    ++count->batches;
    count->bytes += bytes;
  }
  return outcome;
}

void ClientStream::close() {
  closed_ = true;
  wake();
}

Statistics ClientStream::statistics() const {
  auto now = statistics_;
  now.waiting = static_cast<int>(kept_.size());
  return now;
}

}  // namespace taas::data
