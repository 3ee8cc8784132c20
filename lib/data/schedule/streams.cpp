#include "data/schedule/streams.hpp"

#include <algorithm>

namespace taas::data {
namespace {

QueueKey queue_of(const TaskState& task) { return {task.pinned, task.preferred}; }

}  // namespace

bool TaskState::returned_by(WorkerIndex worker) const {
  return std::find(returners.begin(), returners.end(), worker) != returners.end();
}

void Stream::add(WorkerIndex preferred, bool pinned) {
  auto& task = tasks_.emplace_back();
  task.preferred = preferred;
  task.pinned = pinned;
  enqueue(head_ + tasks_.size() - 1);
}

void Stream::remove_first() {
  tasks_.pop_front();
  ++head_;
}

void Stream::enqueue(std::uint64_t number) {
  const auto& queued = task(number);
  auto& numbers = queued.returners.empty() ? queues_[queue_of(queued)] : returned_;
  numbers.insert(number);
}

void Stream::dequeue(std::uint64_t number) {
  if (returned_.erase(number) > 0) return;
  auto queue = queues_.find(queue_of(task(number)));
  queue->second.erase(number);
  if (queue->second.empty()) queues_.erase(queue);
}

WorkerIndex Stream::home_of(WorkerIndex preferred) const {
  auto last = homes_.find(preferred);
  return last == homes_.end() ? kNobody : last->second;
}

std::vector<int> Stream::count_hosted(std::size_t workers) const {
  std::vector<int> hosted(workers);
  for (const auto& [preferred, host] : homes_) ++hosted[static_cast<std::size_t>(host)];
  return hosted;
}

Stream* Streams::find(StreamId id) {
  auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : &found->second;
}

void Streams::close(StreamId id) {
  auto closed = streams_.find(id);
  use(closed->second, -closed->second.used_);
  streams_.erase(closed);
}

void Streams::use(Stream& stream, int more) {
  stream.used_ += more;
  used_ += more;
}

std::size_t Streams::window(const Stream& stream) const {
  return std::min(static_cast<std::size_t>(std::max(credits_, 0)), stream.size());
}

std::vector<Turn> Streams::turns() const {
  std::vector<Turn> turns;
  for (const auto& [id, stream] : streams_) {
    if (stream.has_queued()) turns.push_back({!stream.waits(), stream.used(), stream.served(), id});
  }
  std::sort(turns.begin(), turns.end());
  return turns;
}

}  // namespace taas::data
