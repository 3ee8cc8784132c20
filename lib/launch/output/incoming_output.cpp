#include "launch/output/incoming_output.hpp"

#include <fmt/format.h>

#include <utility>

namespace taas::launch {

IncomingOutput::IncomingOutput(boost::asio::io_context& io, HeldFolder run_folder, Callbacks callbacks)
    : io_(io), run_folder_(std::move(run_folder)), callbacks_(std::move(callbacks)) {}

storage::FileReceiver& IncomingOutput::receiver() {
  if (receiver_) return *receiver_;
  storage::FileReceiverOptions receiving;
  receiving.files = {run_folder_, "output"};
  receiving.on_progress = [this](int source, std::uint64_t transfer, std::uint64_t received) {
    callbacks_.tell(run::AgentId{source}, run::FileProgress{transfer, received});
  };
  receiving.on_stored = [this](int source, std::uint64_t transfer, const std::string& error) {
    callbacks_.tell(run::AgentId{source}, run::FileStored{transfer, error});
  };
  return receiver_.emplace(io_, std::move(receiving));
}

void IncomingOutput::receive(const run::ReceiveFiles& wanted) {
  auto& source = sources_[wanted.agent];
  source.host = wanted.host;
  source.folder = wanted.folder;
}

Result<> IncomingOutput::hear(run::AgentId agent, std::string_view bytes) {
  auto frame = run::decode_file_frame(bytes);
  if (!frame) return frame.error();
  auto source = sources_.find(agent);
  if (source == sources_.end()) return protocol_error("it sends files that nobody asked for");
  bool kept_rules = std::visit([&](const auto& told) { return take(agent, source->second, told); }, *frame);
  if (!kept_rules) return protocol_error("it sends more of a file than it may");
  return {};
}

bool IncomingOutput::take(run::AgentId agent, Source& source, const run::FileOffer& offer) {
  source.waiting = offer.waiting;
  return receiver().offer(agent.value, offer.transfer, {run_folder_, source.folder},
                          {offer.name, offer.points_to, offer.mode, offer.size});
}

bool IncomingOutput::take(run::AgentId agent, Source& /*source*/, const run::FilePiece& piece) {
  return receiver().add(agent.value, piece.transfer, std::string(piece.bytes));
}

bool IncomingOutput::take(run::AgentId agent, Source& /*source*/, const run::FileCancelled& cancelled) {
  receiver().cancel(agent.value, cancelled.transfer);
  return true;
}

void IncomingOutput::forget(run::AgentId agent) {
  auto source = sources_.extract(agent);
  if (source.empty() || !receiver_) return;
  auto name = receiver_->forget(agent.value);
  if (!name) return;
  auto waiting = source.mapped().waiting;
  callbacks_.warn(fmt::format("{} was lost while {} was on its way{}: look for it there, in {}", source.mapped().host,
                              *name, waiting == 0 ? "" : fmt::format(" (and {} more waited)", waiting),
                              run_folder_.path_of("output")));
}

void IncomingOutput::place(const run::PlaceOutput& order, std::function<void(storage::Placed)> on_done) {
  std::vector<storage::Delivered> delivered;
  for (const auto& waiting : order.waiting) {
    auto who = waiting.host.empty() ? fmt::format("node {}", waiting.node.value) : waiting.host;
    delivered.push_back({{run_folder_, waiting.folder}, fmt::format("node_{}", waiting.node.value), std::move(who)});
  }
  receiver().place(std::move(delivered), std::move(on_done));
}

}  // namespace taas::launch
