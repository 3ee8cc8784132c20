#include "data/server_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "data/server_state.hpp"
#include "data/stream_copy.hpp"

namespace taas::data {

namespace {

using namespace std::chrono_literals;

constexpr Duration kMostSilence = 15s;  // clients ping every second
constexpr std::size_t kPayloadPieceBytes = std::size_t{256}
                                           << 10;  // still in the cache when it is copied after its digest was taken

constexpr std::size_t kManyBytes = std::size_t{4} << 20;  // more than are still in the cache when the loop gets there

void copy(std::byte* to, std::span<const std::byte> from) { std::memcpy(to, from.data(), from.size()); }

/// Copies the buffers one behind the other; their digest.
std::uint64_t gather(const std::vector<std::span<const std::byte>>& buffers, std::byte* to) {
  Digest digest;
  const auto copy_piece = size_of(buffers) >= kManyBytes ? stream_copy : copy;
  for (auto rest : buffers) {
    while (!rest.empty()) {
      const auto piece = rest.first(std::min(rest.size(), kPayloadPieceBytes));
      digest.add(piece);
      copy_piece(to, piece);
      to += piece.size();
      rest = rest.subspan(piece.size());
    }
  }
  return digest.value();
}

}  // namespace

ServerSession::ServerSession(Server::State& server, ServerLink& link, std::unique_ptr<Transport> transport)
    : server_(server),
      link_(link),
      transport_(std::move(transport)),
      inbox_(*transport_, *this),
      heard_at_(steady_now()) {}

void ServerSession::push(const FrameHeader& header) {
  outbox_.push({.header = header, .description = {}, .buffers = {}, .keep = {}});
}

Result<> ServerSession::run() {
  while (!link_.stopping_) {
    if (auto done = turn(); !done) return done;
  }
  return {};
}

Result<> ServerSession::turn() {
  send_answers();
  if (auto sent = outbox_.flush(*transport_); !sent) return sent;
  const auto more = inbox_.receive();
  if (!more) return more.error();
  send_answers();
  if (auto sent = outbox_.flush(*transport_); !sent) return sent;
  if (link_.is_awaited && outbox_.empty() && transport_->is_flushed()) server_.tell_sent(link_);
  if (heard_ != inbox_.received()) {
    heard_ = inbox_.received();
    heard_at_ = steady_now();
  }
  if (steady_now() - heard_at_ > kMostSilence) return unavailable_error("the client is silent");
  wait(*more);
  return {};
}

void ServerSession::wait(bool more) {
  if (more) return;
  const auto [begun, patience] = server_.long_jobs(link_);
  for (const auto attempt : begun) push({.kind = FrameKind::kStarted, .attempt = attempt});
  if (!begun.empty()) return;
  const auto what = outbox_.empty() && transport_->is_flushed() ? Ready::kRead : Ready::kReadOrWrite;
  wait_until_ready(transport_->socket(), what, link_.wakeup_, patience);
  link_.wakeup_.clear();
}

void ServerSession::send_answers() {
  for (auto& answer : server_.take_answers(link_)) send(std::move(answer));
}

void ServerSession::send(OutFrame answer) {
  const auto attempt = answer.header.attempt;
  const bool is_answer =
      answer.header.kind != FrameKind::kDefinitionWanted && answer.header.kind != FrameKind::kStarted;
  if (!is_answer) return outbox_.push(std::move(answer));
  const auto job = server_.find_job(link_, attempt);
  if (!job) return;
  if (job->withdrawn) return handle_withdraw(attempt);
  const bool in_slot =
      answer.header.kind == FrameKind::kBatch && link_.family_ == Family::kUnix && !answer.buffers.empty();
  if (in_slot) return send_in_slot(std::move(answer), job->slot);
  server_.close_job(link_, attempt);
  outbox_.push(std::move(answer));
}

/// Into the client's memory; where there is too little of it, the client is asked for more.
void ServerSession::send_in_slot(OutFrame answer, std::uint32_t slot) {
  const auto bytes = size_of(answer.buffers);
  const auto place = slots_.find(slot);
  auto header = answer.header;
  if (place.size() < bytes) {
    parked_[header.attempt] = std::move(answer);
    return push({.kind = FrameKind::kSlotWanted, .attempt = header.attempt, .value = bytes});
  }
  header.flags = kInSlot;
  header.slot = slot;
  header.payload_size = bytes;
  header.value = gather(answer.buffers, place.data());
  server_.close_job(link_, header.attempt);
  outbox_.push({.header = header, .description = std::move(answer.description), .buffers = {}, .keep = {}});
}

Place ServerSession::place(const FrameHeader&) { return {}; }

Result<> ServerSession::handle(Frame frame) {
  const auto& header = frame.header;
  if (header.kind == FrameKind::kHello) return handle_hello(header);
  if (!was_greeted_) return protocol_error("a client that does not say hello first");
  switch (header.kind) {
    case FrameKind::kDefinition:
      server_.add_definition(std::string(frame.description), std::move(frame.payload));
      return {};
    case FrameKind::kTask:
      return handle_task(frame);
    case FrameKind::kWithdraw:
      server_.withdraw(link_, header.attempt);
      if (parked_.contains(header.attempt)) handle_withdraw(header.attempt);
      return {};
    case FrameKind::kSlotOffer:
      return handle_slot_offer(frame);
    case FrameKind::kSlotForget:
      slots_.forget_arena(static_cast<std::uint32_t>(header.value));
      return {};
    case FrameKind::kSlot:
      handle_slot(header);
      return {};
    case FrameKind::kPing:
      push({.kind = FrameKind::kPong});
      return {};
    default:
      return protocol_error(fmt::format("a frame of kind {} from a client", static_cast<int>(header.kind)));
  }
}

Result<> ServerSession::handle_hello(const FrameHeader& header) {
  if (std::exchange(was_greeted_, true)) return protocol_error("a client that says hello twice");
  if (header.has(kInLz4)) outbox_.compress(Compression::kLz4);
  if (header.has(kInZstd)) outbox_.compress(Compression::kZstd);
  push({.kind = FrameKind::kReady});
  return {};
}

Result<> ServerSession::handle_task(const Frame& frame) {
  const auto& header = frame.header;
  Job job{.client = link_.number_,
          .stream = header.stream,
          .number = header.number,
          .attempt = header.attempt,
          .digest = std::string(frame.description),
          .payload = frame.payload};
  const OpenJob open{.slot = header.slot, .told = header.has(kTold)};
  if (!server_.add_job(link_, std::move(job), open)) return protocol_error("an attempt that is sent twice");
  return {};
}

Result<> ServerSession::handle_slot_offer(const Frame& frame) {
  if (link_.family_ != Family::kUnix) return protocol_error("a slot from another machine");
  const auto place = decode_place(frame.description);
  if (!place) return place.error();
  return slots_.add(frame.header.slot, *place, frame.descriptor);
}

void ServerSession::handle_slot(const FrameHeader& header) {
  auto parked = parked_.extract(header.attempt);
  if (parked) send_in_slot(std::move(parked.mapped()), header.slot);
}

/// Every task has one answer, so that the client knows when its slot is free.
void ServerSession::handle_withdraw(Attempt attempt) {
  parked_.erase(attempt);
  server_.close_job(link_, attempt);
  push({.kind = FrameKind::kReturned, .attempt = attempt});
}

}  // namespace taas::data
