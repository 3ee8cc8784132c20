#include "data/client/client_session.hpp"

#include <fmt/format.h>

#include "data/client/client_state.hpp"

namespace taas::data {

namespace {

using namespace std::chrono_literals;

constexpr Duration kPingEvery = 1s;
constexpr int kMostUnanswered = 5;
constexpr Duration kRetryRoom = 20ms;

std::uint16_t flag_of(Compression compression) {
  if (compression == Compression::kNone) return 0;
  return compression == Compression::kLz4 ? kInLz4 : kInZstd;
}

}  // namespace

ClientSession::ClientSession(Client::State& client, ClientLink& link, std::unique_ptr<Transport> transport)
    : client_(client),
      link_(link),
      worker_(link.worker_),
      transport_(std::move(transport)),
      reader_(*transport_, *this),
      is_here_(link.family_ == AddressFamily::kUnix),
      last_ping_(steady_now()) {}

/// The worker may still be writing into slots that it was given.
ClientSession::~ClientSession() {
  for (const auto& [attempt, slot] : slots_) {
    if (is_here_) client_.pool.abandon(*slot);
  }
}

void ClientSession::push(const FrameHeader& header, std::string description) {
  writer_.push({.header = header, .description = std::move(description), .buffers = {}, .keep = {}});
}

Result<> ClientSession::run() {
  push({.kind = FrameKind::kHello, .flags = is_here_ ? std::uint16_t{0} : flag_of(client_.options.compression)});
  while (!link_.stopping_) {
    if (auto done = turn(); !done) return done;
  }
  return {};
}

Result<> ClientSession::turn() {
  carry_out_orders();
  give_waiting_slots();
  if (auto sent = writer_.flush(*transport_); !sent) return sent;
  const auto more = reader_.receive();
  if (!more) return more.error();
  carry_out_orders();  // what just arrived has made
  if (auto sent = writer_.flush(*transport_); !sent) return sent;
  if (auto alive = watch_peer(); !alive) return alive;
  wait(*more);
  return {};
}

void ClientSession::wait(bool more) {
  if (more) return;
  const auto what = writer_.empty() && transport_->is_flushed() ? Ready::kRead : Ready::kReadOrWrite;
  const bool no_room = reader_.is_waiting() || !wanted_slots_.empty();
  const auto patience = no_room ? kRetryRoom : last_ping_ + kPingEvery - steady_now();
  if (reader_.is_waiting()) {
    wait_for_wake(*link_.wakeup_, patience);  // the socket is readable all the time
  } else {
    wait_until_ready(transport_->socket(), what, *link_.wakeup_, patience);
  }
  link_.wakeup_->clear();
}

/// A peer that has not said a word between so many pings is gone. What this process slept through does not count.
Result<> ClientSession::watch_peer() {
  if (heard_ != reader_.received() || reader_.is_waiting()) {
    heard_ = reader_.received();
    unanswered_ = 0;
  }
  if (steady_now() < last_ping_ + kPingEvery) return {};
  if (unanswered_ >= kMostUnanswered) return unavailable_error(fmt::format("no answer for {} s", kMostUnanswered));
  last_ping_ = steady_now();
  ++unanswered_;
  push({.kind = FrameKind::kPing});
  return writer_.flush(*transport_);
}

void ClientSession::carry_out_orders() {
  for (const auto& order : client_.take_orders(link_)) {
    std::visit([this](const auto& what) { carry_out(what); }, order);
  }
}

void ClientSession::carry_out(const SendTask& order) {
  if (const auto why = too_large(order); !why.empty()) {
    return client_.arrived(worker_, order.attempt, Undeliverable{why});
  }
  auto slot = kNoSlot;
  if (is_here_ && order.expected_bytes > 0) {
    const auto given = give_slot(order.attempt, order.expected_bytes);  // an error is told when the worker asks for one
    if (given && *given) slot = slots_.at(order.attempt)->number();
  }
  writer_.push({.header = {.kind = FrameKind::kTask,
                           .flags = order.told ? kTold : std::uint16_t{0},
                           .stream = order.task.stream,
                           .number = order.task.number,
                           .attempt = order.attempt,
                           .slot = slot},
                .description = order.definition,
                .buffers = {std::as_bytes(std::span(*order.payload))},
                .keep = order.payload});
}

std::size_t ClientSession::sent_bytes(const Definition& definition) const {
  return (definition.bytes ? definition.bytes->size() : 0) +
         (definition.memory && !is_here_ ? definition.memory->bytes : 0);
}

/// What a worker would cut the link for, again and again. Empty: it may be sent.
std::string ClientSession::too_large(const SendTask& order) const {
  const auto about = [](const char* what, std::size_t bytes, std::uint64_t most, const char* way_out) {
    return bytes <= most ? std::string()
                         : fmt::format("{} {:.1f} MB, and may have {:.1f} MB: {}", what,
                                       static_cast<double>(bytes) / 1e6, static_cast<double>(most) / 1e6, way_out);
  };
  const auto definition = client_.definition(order.definition);
  auto why = about("the indices of a batch have", order.payload->size(), most_payload(FrameKind::kTask),
                   "take smaller batches");
  return why.empty() && definition
             ? about("the loader's definition, with its dataset, has", sent_bytes(*definition),
                     most_payload(FrameKind::kDefinition), "keep the data in files, and let the dataset open them")
             : why;
}

void ClientSession::carry_out(const SendWithdraw& order) {
  push({.kind = FrameKind::kWithdraw, .attempt = order.attempt});
  wanted_slots_.erase(order.attempt);
}

/// The second look comes after the bell was asked to ring, so that no room is missed. Only payloads in the socket stand
/// in each other's way: shared slots are filled in any order.
Result<std::shared_ptr<Slot>> ClientSession::take_slot(Attempt attempt, std::size_t bytes, SlotMemory memory) {
  for (const bool again : {false, true}) {
    const auto look = again && memory == SlotMemory::kOwn ? ClaimScope::kThorough : ClaimScope::kQuick;
    const auto claim = client_.claim(worker_, attempt, look);
    if (!claim.wanted) break;
    auto slot = client_.pool.take(bytes, memory, claim.room);
    if (!slot || *slot) return slot;
    if (!again) client_.bell->wait(link_.wakeup_);
  }
  return std::shared_ptr<Slot>();
}

/// Memory for one attempt of a worker on this machine, and the worker told of it. False: there is no room now. An
/// error: there will not be any.
Result<bool> ClientSession::give_slot(Attempt attempt, std::size_t bytes) {
  auto slot = take_slot(attempt, bytes, SlotMemory::kShared);
  if (!slot) return slot.error();
  if (!*slot) return false;
  offer(*slot);
  slots_[attempt] = std::move(*slot);
  return true;
}

void ClientSession::offer(const std::shared_ptr<Slot>& slot) {
  forget_arenas();
  if (!offered_slots_.insert(slot->number()).second) return;
  const bool is_new = offered_arenas_.insert(slot->arena()).second;
  const SlotPlace where{.arena = slot->arena(),
                        .arena_bytes = slot->arena_bytes(),
                        .offset = slot->offset(),
                        .bytes = slot->bytes().size()};
  writer_.push({.header = {.kind = FrameKind::kSlotOffer,
                           .flags = is_new ? kDescriptor : std::uint16_t{0},
                           .slot = slot->number()},
                .description = encode(where),
                .buffers = {},
                .keep = slot,
                .descriptor = is_new ? &slot->memory() : nullptr});
}

/// The worker lets go of memory that is not used any more.
void ClientSession::forget_arenas() {
  for (const auto arena : client_.pool.forgotten(forgotten_)) {
    ++forgotten_;
    if (offered_arenas_.erase(arena) > 0) push({.kind = FrameKind::kSlotForget, .value = arena});
  }
}

void ClientSession::give_waiting_slots() {
  for (auto wanted = wanted_slots_.begin(); wanted != wanted_slots_.end();) {
    const auto [attempt, bytes] = *wanted;
    const auto given = give_slot(attempt, bytes);
    if (!given) {
      client_.arrived(worker_, attempt, Undeliverable{given.error().message});
      push({.kind = FrameKind::kWithdraw, .attempt = attempt});
      wanted = wanted_slots_.erase(wanted);
    } else if (*given) {
      push({.kind = FrameKind::kSlot, .attempt = attempt, .slot = slots_.at(attempt)->number()});
      wanted = wanted_slots_.erase(wanted);
    } else {
      wanted =
          client_.claim(worker_, attempt, ClaimScope::kQuick).wanted ? std::next(wanted) : wanted_slots_.erase(wanted);
    }
  }
}

}  // namespace taas::data
