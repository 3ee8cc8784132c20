#include "data/server/server_session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/server/server_state.hpp"

namespace taas::data {

namespace {

using namespace std::chrono_literals;

constexpr Duration kMostSilence = 15s;  // clients ping every second
constexpr std::size_t kCopiedInATurn = std::size_t{64}
                                       << 20;  // then it is looked whether the client has said something

}  // namespace

ServerSession::ServerSession(Server::State& server, ServerLink& link, std::unique_ptr<Transport> transport)
    : server_(server),
      link_(link),
      transport_(std::move(transport)),
      reader_(*transport_, *this),
      heard_at_(steady_now()) {}

void ServerSession::push(const FrameHeader& header) { writer_.push(frame_of(header)); }

Result<> ServerSession::run() {
  while (!link_.stopping_) {
    if (auto done = turn(); !done) return done;
  }
  return {};
}

Result<> ServerSession::turn() {
  send_answers();
  copy_into_slots();
  if (auto sent = writer_.flush(*transport_); !sent) return sent;
  const auto more = reader_.receive();
  if (!more) return more.error();
  send_answers();
  copy_into_slots();
  if (auto sent = writer_.flush(*transport_); !sent) return sent;
  if (link_.is_awaited && writer_.empty() && transport_->is_flushed()) server_.jobs.tell_sent(link_);
  if (heard_ != reader_.received()) {
    heard_ = reader_.received();
    heard_at_ = steady_now();
  }
  if (steady_now() - heard_at_ > kMostSilence) return unavailable_error("the client is silent");
  wait(*more);
  return {};
}

void ServerSession::wait(bool more) {
  if (more || !copies_.empty()) return;
  const auto [begun, patience] = server_.jobs.long_jobs(link_);
  for (const auto attempt : begun) push({.kind = FrameKind::kStarted, .attempt = attempt});
  if (!begun.empty()) return;
  const auto what = writer_.empty() && transport_->is_flushed() ? Ready::kRead : Ready::kReadOrWrite;
  wait_until_ready(transport_->socket(), what, link_.wakeup_, patience);
  link_.wakeup_.clear();
}

void ServerSession::send_answers() {
  for (auto& answer : server_.jobs.take_answers(link_)) send(std::move(answer));
}

void ServerSession::send(OutFrame answer) {
  const auto attempt = answer.header.attempt;
  const bool is_answer =
      answer.header.kind != FrameKind::kDefinitionWanted && answer.header.kind != FrameKind::kStarted;
  if (!is_answer) return writer_.push(std::move(answer));
  const auto job = server_.jobs.find(link_, attempt);
  if (!job) return;
  if (job->withdrawn) return handle_withdraw(attempt);
  const bool in_slot =
      answer.header.kind == FrameKind::kBatch && link_.family_ == AddressFamily::kUnix && !answer.buffers.empty();
  if (in_slot) return send_in_slot(std::move(answer), job->slot);
  server_.jobs.close(link_, attempt);
  writer_.push(std::move(answer));
}

/// Into the client's memory; where there is too little of it, the client is asked for more.
void ServerSession::send_in_slot(OutFrame answer, std::uint32_t slot) {
  const auto bytes = size_of(answer.buffers);
  const auto attempt = answer.header.attempt;
  if (slots_.find(slot).size() < bytes) {
    parked_[attempt] = std::move(answer);
    return push({.kind = FrameKind::kSlotWanted, .attempt = attempt, .value = bytes});
  }
  answer.header.flags = kInSlot;
  answer.header.slot = slot;
  answer.header.payload_size = bytes;
  auto buffers = std::exchange(answer.buffers, {});
  copies_.push_back({.answer = std::move(answer), .copy = SlotCopy(std::move(buffers))});
}

/// In the order in which the batches were made, a part of a large one at a time.
void ServerSession::copy_into_slots() {
  for (auto left = kCopiedInATurn; left > 0 && !copies_.empty();) {
    auto& [answer, copy] = copies_.front();
    const auto most = std::min(left, copy.bytes());
    left -= most;
    const auto slot = slots_.find(answer.header.slot);
    if (slot.size() >= copy.bytes()) copy.step(slot, most);  // else the client has taken the slot away: its own fault
    if (slot.size() >= copy.bytes() && !copy.is_done()) return;
    answer.header.value = copy.digest();
    server_.jobs.close(link_, answer.header.attempt);
    writer_.push(frame_of(answer.header));
    copies_.pop_front();
  }
}

Place ServerSession::place(const FrameHeader&) { return {}; }

Result<> ServerSession::handle(Frame frame) {
  const auto& header = frame.header;
  if (header.kind == FrameKind::kHello) return handle_hello(header);
  if (!was_greeted_) return protocol_error("a client that does not say hello first");
  switch (header.kind) {
    case FrameKind::kDefinition:
      return handle_definition(std::move(frame));
    case FrameKind::kTask:
      return handle_task(frame);
    case FrameKind::kWithdraw:
      server_.jobs.withdraw(link_, header.attempt);
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
  if (header.has(kInLz4)) writer_.compress(Compression::kLz4);
  if (header.has(kInZstd)) writer_.compress(Compression::kZstd);
  push({.kind = FrameKind::kReady});
  return {};
}

/// Its memory is a descriptor, or on another machine the end of the payload.
Result<> ServerSession::handle_definition(Frame frame) {
  ReceivedDefinition received{.bytes = std::move(frame.payload), .memory = {}};
  const auto bytes = frame.header.value;
  if (bytes > 0) {
    const bool is_here = frame.header.has(kDescriptor);
    if (is_here && link_.family_ != AddressFamily::kUnix)
      return protocol_error("a dataset's memory from another machine");
    if (!is_here && bytes > received.bytes.size()) return protocol_error("a definition shorter than its memory");
    const auto text =
        is_here ? std::string_view() : std::string_view(received.bytes).substr(received.bytes.size() - bytes);
    auto memory = is_here ? SealedMemory::of(std::move(frame.descriptor), bytes)
                          : SealedMemory::copy_of(std::as_bytes(std::span(text)));
    if (!memory) return memory.error();
    received.memory = std::move(*memory);
    received.bytes = std::string(received.bytes, 0, received.bytes.size() - text.size());
  }
  server_.jobs.add_definition(std::string(frame.description), std::move(received));
  return {};
}

Result<> ServerSession::handle_task(const Frame& frame) {
  const auto& header = frame.header;
  Job job{.client = link_.number_,
          .stream = header.stream,
          .number = header.number,
          .attempt = header.attempt,
          .digest = std::string(frame.description),
          .payload = frame.payload,
          .has_ended_a_worker = header.has(kTold)};
  const OpenJob open{.slot = header.slot, .told = header.has(kTold)};
  if (!server_.jobs.add(link_, std::move(job), open)) return protocol_error("an attempt that is sent twice");
  return {};
}

Result<> ServerSession::handle_slot_offer(const Frame& frame) {
  if (link_.family_ != AddressFamily::kUnix) return protocol_error("a slot from another machine");
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
  server_.jobs.close(link_, attempt);
  push({.kind = FrameKind::kReturned, .attempt = attempt});
}

}  // namespace taas::data
