#include "data/client/client.hpp"

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
    const bool is_new = i >= state.links.size();
    if (!is_new && state.links[i]->address() == workers[i]) continue;
    if (!is_new) state.links[i]->stop();
    auto link = std::make_unique<ClientLink>(state, static_cast<WorkerIndex>(i), std::move(workers[i]));
    const std::lock_guard lock(state.mutex);
    if (is_new) state.links.emplace_back();
    std::swap(state.links[i], link);
    state.links[i]->start();
  }
  const std::lock_guard lock(state.mutex);
  state.adjust_credits();
  for (const auto& [id, stream] : state.streams) stream->changed.notify_all();
}

StreamId Client::open(Definition definition) {
  if (is_forked()) return 0;
  const std::lock_guard lock(state_->mutex);
  auto stream = std::make_shared<ClientStream>();
  state_->definitions.try_emplace(definition.digest, definition);
  stream->definition = std::move(definition);
  state_->streams.emplace(state_->next_stream, std::move(stream));
  return state_->next_stream++;
}

void Client::submit(StreamId stream, std::string payload, WorkerIndex preferred, bool pinned) {
  if (is_forked()) return;
  auto& state = *state_;
  const std::lock_guard lock(state.mutex);
  const auto found = state.streams.find(stream);
  if (found == state.streams.end()) return;
  const auto number = found->second->submitted++;
  found->second->payloads.emplace(number, std::make_shared<const std::string>(std::move(payload)));
  state.apply(state.schedule.handle(Submitted{
      .task = {.stream = stream, .number = number}, .preferred = preferred, .pinned = pinned, .at = steady_now()}));
}

std::optional<Delivery> Client::next(StreamId stream, Duration patience) {
  if (is_forked()) return Undeliverable{kForked};
  auto& state = *state_;
  state.pool.settle();
  std::unique_lock lock(state.mutex);
  const auto found = state.streams.find(stream);
  if (found == state.streams.end()) return Undeliverable{kClosed};
  const auto held = found->second;
  auto& from = *held;
  const auto began = steady_now();
  std::string hopeless;
  while (!from.closed && !from.kept.contains(from.taken) && patience > Duration(0) &&
         (hopeless = state.hopeless()).empty()) {
    if (!std::exchange(from.waits, true)) state.bell->ring();  // now it may have memory beyond the budget
    if (from.changed.wait_until(lock, began + patience) == std::cv_status::timeout) break;
  }
  const auto waited = seconds(steady_now() - began);
  from.statistics.waited_seconds += waited;
  state.totals.waited_seconds += waited;
  if (from.closed) return Undeliverable{kClosed};
  auto here = from.kept.extract(from.taken);
  if (!here) return hopeless.empty() ? std::optional<Delivery>() : Undeliverable{hopeless};
  Delivery delivery = std::move(here.mapped());
  from.waits = false;
  from.count_taken(delivery, state);
  state.apply(state.schedule.handle(Taken{.task = {.stream = stream, .number = from.taken++}, .at = steady_now()}));
  lock.unlock();
  if (const auto* batch = std::get_if<Batch>(&delivery); batch && batch->slot) state.pool.give_away(*batch->slot);
  state.bell->ring();
  return delivery;
}

void ClientStream::count_taken(const Delivery& delivery, Client::State& state) {
  const auto* batch = std::get_if<Batch>(&delivery);
  if (!batch) return;
  statistics.buffered_bytes -= batch->payload.size();
  for (auto* count : {&statistics, &state.totals}) {
    ++count->batches;
    count->bytes += batch->payload.size();
  }
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
  closed->closed = true;
  closed->changed.notify_all();
  const auto& digest = closed->definition.digest;
  const bool is_used = std::any_of(state.streams.begin(), state.streams.end(),
                                   [&](const auto& entry) { return entry.second->definition.digest == digest; });
  if (!is_used) state.definitions.erase(digest);
}

void Client::use(std::shared_ptr<Copier> copier) {
  if (!is_forked()) state_->pool.use(std::move(copier));
}

Statistics Client::statistics(StreamId stream) const {
  if (is_forked()) return {};
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->streams.find(stream);
  if (found == state_->streams.end()) return {};
  auto result = found->second->statistics;
  result.waiting = static_cast<int>(found->second->kept.size());
  result.workers_up = state_->workers_up();
  return result;
}

Statistics Client::statistics() const {
  if (is_forked()) return {};
  const std::lock_guard lock(state_->mutex);
  auto result = state_->totals;
  result.workers_up = state_->workers_up();
  for (const auto& [id, stream] : state_->streams) {
    result.waiting += static_cast<int>(stream->kept.size());
    result.buffered_bytes += stream->statistics.buffered_bytes;
  }
  return result;
}

std::vector<std::string> Client::take_remarks() {
  if (is_forked()) return {};
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->remarks, {});
}

}  // namespace taas::data
