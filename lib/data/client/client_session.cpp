#include "data/client/client_session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/memory.hpp"
#include "data/client/client_state.hpp"

namespace taas::data {

namespace {

using namespace std::chrono_literals;

constexpr Duration kRetryRoom = 20ms;
constexpr std::uint64_t kLongestTask = 3'600'000'000;  // in microseconds: whatever a worker says

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
      slots_(client, worker_, is_here_, link.wakeup_, writer_),
      watch_(steady_now()) {}

Result<> ClientSession::run() {
  const auto flags = is_here_ ? std::uint16_t{0} : flag_of(client_.options.compression);
  writer_.push(frame_of({.kind = FrameKind::kHello, .flags = flags}));
  while (!link_.stopping_) {
    if (auto done = turn(); !done) return done;
  }
  return {};
}

Result<> ClientSession::turn() {
  carry_out_orders();
  slots_.give_wanted();
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
  const bool no_room = reader_.is_waiting() || slots_.is_wanted();
  const auto patience = no_room ? kRetryRoom : watch_.next_ping() - steady_now();
  if (reader_.is_waiting()) {
    wait_for_wake(*link_.wakeup_, patience);  // the socket is readable all the time
  } else {
    wait_until_ready(transport_->socket(), what, *link_.wakeup_, patience);
  }
  link_.wakeup_->clear();
}

Result<> ClientSession::watch_peer() {
  switch (watch_.look(steady_now(), reader_.received(), !reader_.is_waiting())) {
    case PeerWatch::Verdict::kWell:
      return {};
    case PeerWatch::Verdict::kGone:
      return unavailable_error(fmt::format("no answer for {} s", PeerWatch::kMostUnanswered));
    case PeerWatch::Verdict::kPing:
      writer_.push(frame_of({.kind = FrameKind::kPing}));
      return writer_.flush(*transport_);
  }
  return {};
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
    const auto given = slots_.give(order.attempt, order.expected_bytes);
    if (given) slot = *given;  // an error is told when the worker asks for one
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
  writer_.push(frame_of({.kind = FrameKind::kWithdraw, .attempt = order.attempt}));
  slots_.want_no_more(order.attempt);
}

// What the worker says.

Place ClientSession::place(const FrameHeader& header) {
  if (!client_.claim(worker_, header.attempt, ClaimScope::kQuick).wanted) return {};
  const auto slot = slots_.take_own(header.attempt, header.payload_size);
  if (!slot) {
    client_.arrived(worker_, header.attempt, Undeliverable{slot.error().message});
    return {};
  }
  if (*slot == nullptr) return {.where = Place::Where::kNotYet, .bytes = {}};
  return {.where = Place::Where::kHere, .bytes = (*slot)->bytes().first(header.payload_size)};
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
  auto slot = slots_.extract(header.attempt);
  if (header.has(kInSlot)) {
    const bool is_there = slot && slot->number() == header.slot && slot->bytes().size() >= header.payload_size;
    if (!is_there) return protocol_error("a batch in a slot that was not given for it");
  }
  if (header.payload_size > 0 && !slot) {  // read past: not wanted, or too large
    client_.returned(worker_, header.attempt, {});
    return {};
  }
  client_.arrived(worker_, header.attempt,
                  Batch{.payload = slot ? slot->bytes().first(header.payload_size) : std::span<std::byte>(),
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
    slots_.want(header.attempt, header.value);
    slots_.give_wanted();
    return {};
  }
  writer_.push(frame_of({.kind = FrameKind::kWithdraw, .attempt = header.attempt}));
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
    if (!mapping) return no_memory(memory->bytes, mapping.error().system_errno);
    kept->memory = std::move(*mapping);
    frame.buffers.emplace_back(kept->memory.bytes());
  }
  writer_.push(std::move(frame));
  return {};
}

}  // namespace taas::data
