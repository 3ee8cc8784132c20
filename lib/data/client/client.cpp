#include "data/client/client.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "data/client/client_state.hpp"

namespace taas::data {

namespace {

constexpr const char* kForked =
    "this process was forked from the one that receives batches, and cannot receive any itself";
constexpr const char* kClosed = "the stream is closed";

}  // namespace

Client::Client(ClientOptions options) : state_(std::make_shared<State>(std::move(options))) {
  auto& state = *state_;
  auto handshake = Handshake::make(net::Role::kClient, {.run_id = state.options.run_id, .key = state.options.key},
                                   state.options.encryption);
  if (handshake) {
    state.handshake = std::move(*handshake);
  } else {
    state.remarks.push_back(handshake.error().message);
  }
}

Client::~Client() {
  if (is_forked()) {
    static_cast<void>(new std::shared_ptr<State>(state_));  // its threads are not here, its locks may be held for ever
    return;
  }
  state_->stop();
}

bool Client::is_forked() const { return ::getpid() != state_->process; }

void Client::set_workers(std::vector<WorkerAddress> workers) {
  if (is_forked() || !state_->handshake) return;
  auto& state = *state_;
  const std::lock_guard one_change(state.workers_mutex);
  if (workers.size() < state.links.size()) workers.resize(state.links.size());
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto worker = static_cast<WorkerIndex>(i);
    const bool is_new = i >= state.links.size();
    if (!is_new && state.links.at(worker).address() == workers[i]) continue;
    if (!is_new) state.links.at(worker).stop();
    auto link = std::make_unique<ClientLink>(state, worker, std::move(workers[i]));
    const std::lock_guard lock(state.mutex);
    link = state.links.set(worker, std::move(link));
    const auto& started = state.links.at(worker);
    if (!started.refusal().empty())
      state.remarks.push_back(fmt::format("{} cannot be used: {}", started.address().name, started.refusal()));
  }
  const std::lock_guard lock(state.mutex);
  state.adjust_credits();
  for (const auto& [id, stream] : state.streams) stream->wake();
}

StreamId Client::open(Definition definition) {
  if (is_forked()) return 0;
  const std::lock_guard lock(state_->mutex);
  state_->definitions.try_emplace(definition.digest, definition);
  state_->streams.emplace(state_->next_stream, std::make_shared<ClientStream>(std::move(definition)));
  return state_->next_stream++;
}

void Client::submit(StreamId stream, std::string payload, WorkerIndex preferred, bool pinned) {
  if (is_forked()) return;
  auto& state = *state_;
  const std::lock_guard lock(state.mutex);
  const auto found = state.streams.find(stream);
  if (found == state.streams.end()) return;
  const auto number = found->second->submit(std::move(payload));
  state.apply(state.schedule.handle(Submitted{
      .task = {.stream = stream, .number = number}, .preferred = preferred, .pinned = pinned, .at = steady_now()}));
}

std::optional<Outcome> Client::next(StreamId stream, Duration patience) {
  if (is_forked()) return Undeliverable{kForked};
  auto& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto found = state.streams.find(stream);
  if (found == state.streams.end()) return Undeliverable{kClosed};
  const auto held = found->second;
  auto& from = *held;
  const auto began = steady_now();
  std::string hopeless;
  while (!from.is_closed() && !from.has_next() && patience > Duration(0) &&
         (hopeless = state.links.hopeless()).empty()) {
    if (from.begin_to_wait()) state.bell->ring();  // now it may have memory beyond the budget
    if (!from.wait(lock, began + patience)) break;
  }
  const auto waited = seconds(steady_now() - began);
  from.count_waited(waited);
  state.totals.waited_seconds += waited;
  if (from.is_closed()) return Undeliverable{kClosed};
  if (!from.has_next()) return hopeless.empty() ? std::optional<Outcome>() : Undeliverable{hopeless};
  const Task task{.stream = stream, .number = from.next()};
  Outcome outcome = from.take(state.totals);
  state.apply(state.schedule.handle(Taken{.task = task, .at = steady_now()}));
  lock.unlock();
  if (const auto* batch = std::get_if<Batch>(&outcome); batch && batch->slot) state.pool.give_away(*batch->slot);
  state.bell->ring();
  return outcome;
}

void Client::close(StreamId stream) {
  if (is_forked()) return;
  auto& state = *state_;
  std::shared_ptr<ClientStream> closed;  // its batches are let go after the mutex
  const std::lock_guard lock(state.mutex);
  const auto found = state.streams.find(stream);
  if (found == state.streams.end()) return;
  state.apply(state.schedule.handle(StreamClosed{.stream = stream, .at = steady_now()}));
  closed = std::move(found->second);
  state.streams.erase(found);
  closed->close();
  const auto& digest = closed->digest();
  const bool is_used = std::any_of(state.streams.begin(), state.streams.end(),
                                   [&](const auto& entry) { return entry.second->digest() == digest; });
  if (!is_used) state.definitions.erase(digest);
}

Statistics Client::statistics(StreamId stream) const {
  if (is_forked()) return {};
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->streams.find(stream);
  if (found == state_->streams.end()) return {};
  auto result = found->second->statistics();
  result.workers_up = state_->links.count_up();
  return result;
}

Statistics Client::statistics() const {
  if (is_forked()) return {};
  const std::lock_guard lock(state_->mutex);
  auto result = state_->totals;
  result.workers_up = state_->links.count_up();
  for (const auto& [id, stream] : state_->streams) {
    const auto own = stream->statistics();
    result.waiting += own.waiting;
    result.buffered_bytes += own.buffered_bytes;
  }
  return result;
}

std::vector<std::string> Client::take_remarks() {
  if (is_forked()) return {};
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->remarks, {});
}

}  // namespace taas::data
