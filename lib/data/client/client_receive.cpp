// What a client does with the frames of a worker.
#include <fmt/format.h>

#include <algorithm>

#include "data/client/client_session.hpp"
#include "data/client/client_state.hpp"

namespace taas::data {

namespace {

constexpr std::uint64_t kLongestTask = 3'600'000'000;  // in microseconds: whatever a worker says

}  // namespace

Place ClientSession::place(const FrameHeader& header) {
  if (!client_.claim(worker_, header.attempt, ClaimScope::kQuick).wanted) return {};
  auto slot = take_slot(header.attempt, header.payload_size, SlotMemory::kOwn);
  if (!slot) {
    client_.arrived(worker_, header.attempt, Undeliverable{slot.error().message});
    return {};
  }
  if (!*slot) return {.where = Place::Where::kNotYet, .bytes = {}};
  const auto bytes = (*slot)->bytes().first(header.payload_size);
  slots_[header.attempt] = std::move(*slot);
  return {.where = Place::Where::kHere, .bytes = bytes};
}

Result<> ClientSession::handle(Frame frame) {
  const auto& header = frame.header;
  switch (header.kind) {
    case FrameKind::kReady:
      return handle_ready();
    case FrameKind::kDefinitionWanted:
      return send_definition(std::string(frame.description));
    case FrameKind::kStarted:
      client_.started(worker_, header.attempt);
      return {};
    case FrameKind::kBatch:
      return handle_batch(frame);
    case FrameKind::kRaised:
      return handle_raised(frame);
    case FrameKind::kExhausted:
      slots_.erase(header.attempt);
      client_.arrived(worker_, header.attempt, Exhausted{});
      return {};
    case FrameKind::kReturned:
      slots_.erase(header.attempt);
      client_.returned(worker_, header.attempt, std::string(frame.description));
      return {};
    case FrameKind::kSlotWanted:
      return handle_slot_wanted(header);
    case FrameKind::kPong:
      return {};
    default:
      return protocol_error(fmt::format("a frame of kind {} from a data worker", static_cast<int>(header.kind)));
  }
}

Result<> ClientSession::handle_ready() {
  if (was_up_) return protocol_error("a data worker that is ready twice");
  was_up_ = true;
  client_.up(worker_);
  return {};
}

Result<> ClientSession::handle_batch(const Frame& frame) {
  const auto& header = frame.header;
  auto held = slots_.extract(header.attempt);
  auto slot = held ? std::move(held.mapped()) : nullptr;
  if (header.has(kInSlot)) {
    const bool is_there = slot && slot->number() == header.slot && slot->bytes().size() >= header.payload_size;
    if (!is_there) return protocol_error("a batch in a slot that was not given for it");
  }
  if (header.payload_size > 0 && !slot) {  // read past: not wanted, or too large
    client_.returned(worker_, header.attempt, {});
    return {};
  }
  client_.arrived(worker_, header.attempt,
                  Batch{.description = remember(frame.description),
                        .payload = slot ? slot->bytes().first(header.payload_size) : std::span<std::byte>(),
                        .slot = slot,
                        .digest = header.value,
                        .worker = worker_},
                  std::chrono::microseconds(std::min(header.number, kLongestTask)));
  return {};
}

Result<> ClientSession::handle_raised(const Frame& frame) {
  slots_.erase(frame.header.attempt);
  const auto text = frame.header.value;
  if (text > frame.payload.size()) return protocol_error("an exception whose text is longer than itself");
  client_.arrived(worker_, frame.header.attempt,
                  Raised{.type = std::string(frame.description),
                         .text = frame.payload.substr(0, text),
                         .pickled = frame.payload.substr(text),
                         .worker = worker_});
  return {};
}

Result<> ClientSession::handle_slot_wanted(const FrameHeader& header) {
  if (!is_here_) return protocol_error("a data worker of another machine wants a slot");
  slots_.erase(header.attempt);  // too small: not written into
  if (client_.claim(worker_, header.attempt, ClaimScope::kQuick).wanted) {
    wanted_slots_[header.attempt] = header.value;
    give_waiting_slots();
    return {};
  }
  push({.kind = FrameKind::kWithdraw, .attempt = header.attempt});
  return {};
}

/// A worker on this machine maps the memory that goes along; another one is sent it.
Result<> ClientSession::send_definition(const std::string& digest) {
  struct Kept {
    Definition definition;
    Mapping memory;
  };
  auto found = client_.definition(digest);
  if (!found || !found->bytes) return {};  // of a stream that has been closed meanwhile
  const auto kept = std::make_shared<Kept>(Kept{.definition = std::move(*found), .memory = {}});
  const auto* memory = kept->definition.memory.get();
  OutFrame frame{.header = {.kind = FrameKind::kDefinition, .value = memory ? memory->bytes : 0},
                 .description = digest,
                 .buffers = {std::as_bytes(std::span(*kept->definition.bytes))},
                 .keep = kept};
  if (memory && is_here_) {
    frame.header.flags = kDescriptor;
    frame.descriptor = &memory->descriptor;
  } else if (memory) {
    auto mapping = Mapping::to_read(memory->descriptor, memory->bytes);
    if (!mapping) return mapping.error();
    kept->memory = std::move(*mapping);
    frame.buffers.emplace_back(kept->memory.bytes());
  }
  writer_.push(std::move(frame));
  return {};
}

/// Batches of one loader look alike.
std::shared_ptr<const std::string> ClientSession::remember(std::string_view description) {
  if (!description_ || *description_ != description) description_ = std::make_shared<const std::string>(description);
  return description_;
}

}  // namespace taas::data
