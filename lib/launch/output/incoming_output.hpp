#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/folders/held_folder.hpp"
#include "run/coordinator/coordinator.hpp"
#include "run/messages/file_frames.hpp"
#include "storage/delivery/file_receiver.hpp"

namespace taas::launch {

/// The coordinator's end of what agents send of their ranks' output: which agent may send, where its files go, and the
/// answers.
class IncomingOutput {
 public:
  struct Callbacks {
    std::function<void(run::AgentId, const run::CoordinatorMessage&)> tell;
    std::function<void(std::string)> warn;
  };
  IncomingOutput(boost::asio::io_context& io, HeldFolder run_folder, Callbacks callbacks);

  void receive(const run::ReceiveFiles& wanted);
  /// An error: the agent does not keep to the rules.
  Result<> hear(run::AgentId agent, std::string_view frame);
  /// Its link is closed.
  void forget(run::AgentId agent);
  void place(const run::PlaceOutput& order, std::function<void(storage::Placed)> on_done);

 private:
  struct Source {
    std::string host;
    std::string folder;
    std::uint32_t waiting = 0;  ///< files behind the last one that was offered
  };

  bool take(run::AgentId agent, Source& source, const run::FileOffer& offer);
  bool take(run::AgentId agent, Source& source, const run::FilePiece& piece);
  bool take(run::AgentId agent, Source& source, const run::FileCancelled& cancelled);
  storage::FileReceiver& receiver();

  boost::asio::io_context& io_;
  HeldFolder run_folder_;
  Callbacks callbacks_;
  std::map<run::AgentId, Source> sources_;
  std::optional<storage::FileReceiver> receiver_;  // from the first file on
};

}  // namespace taas::launch
