#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/error.hpp"

namespace taas::launch {

/// The names of what `taas-run look`, other commands and the run say to each other: one JSON object a line.
inline constexpr const char* kCommandSocket = "command";  // in a private folder of the run's

/// Where commands from other terminals reach this run: a socket in a folder that only its user may enter, who is asked
/// for once more. Lines in are {"ask":"who"}, {"ask":"look","rank":3} and {"ask":"stop"}; to each
/// there is one line back.
class CommandSocket {
 public:
  struct Callbacks {
    /// What the run is called, as a JSON object.
    std::function<std::string()> who;
    /// answer() is to follow. `rank`: -1 for all.
    std::function<void(std::uint64_t client, int rank)> look;
    /// As SIGTERM would.
    std::function<void()> stop;
  };
  static Result<CommandSocket> open(boost::asio::io_context& io, const std::map<std::string, std::string>& environment,
                                    Callbacks callbacks);
  CommandSocket(CommandSocket&&) noexcept;
  CommandSocket& operator=(CommandSocket&&) = delete;
  ~CommandSocket();

  /// A client that has left hears nothing.
  void answer(std::uint64_t client, std::string line);

 private:
  struct State;
  explicit CommandSocket(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace taas::launch
