#include "launch/command_socket.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <utility>

#include "base/json/json.hpp"
#include "base/timer.hpp"
#include "node/process/private_folder.hpp"

namespace taas::launch {
namespace {

using Protocol = boost::asio::local::stream_protocol;

constexpr std::size_t kMostClients = 4;
constexpr std::size_t kLongestLine = 4096;
constexpr auto kPause = std::chrono::milliseconds(200);

bool is_same_user(const Protocol::socket& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  const int told =
      ::getsockopt(const_cast<Protocol::socket&>(socket).native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return told == 0 && (peer.uid == ::geteuid() || peer.uid == 0);
}

struct Client {
  Client(Protocol::socket connected, std::uint64_t given) : socket(std::move(connected)), number(given) {}
  Protocol::socket socket;
  std::uint64_t number;
  std::string in;
  std::string out;
};

}  // namespace

struct CommandSocket::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& io, node::PrivateFolder held, Callbacks calls)
      : folder(std::move(held)),
        callbacks(std::move(calls)),
        acceptor(io, Protocol::endpoint(folder.path() + "/" + kCommandSocket)),
        again(io, [this] { accept(); }) {}

  void accept() {
    acceptor.async_accept([self = shared_from_this()](boost::system::error_code failed, Protocol::socket socket) {
      if (failed == boost::asio::error::operation_aborted || self->closed) return;
      if (failed) return self->again.set(steady_now() + kPause);  // no descriptor is free: it would fail at once again
      if (self->clients.size() < kMostClients && is_same_user(socket)) self->add(std::move(socket));
      self->accept();
    });
  }

  void add(Protocol::socket socket) {
    const auto number = ++last;
    clients.emplace(number, std::make_shared<Client>(std::move(socket), number));
    read(clients.at(number));
  }

  void read(const std::shared_ptr<Client>& client) {
    boost::asio::async_read_until(
        client->socket, boost::asio::dynamic_buffer(client->in, kLongestLine), '\n',
        [self = shared_from_this(), client](boost::system::error_code failed, std::size_t length) {
          if (failed || self->closed) return void(self->clients.erase(client->number));
          const auto line = client->in.substr(0, length);
          client->in.erase(0, length);
          if (!self->obey(*client, line)) self->clients.erase(client->number);
        });
  }

  /// False: it says something else than a command, and is not heard any more.
  bool obey(const Client& client, const std::string& line) {
    const auto request = parse_json(line);
    const auto* object = request ? request->if_object() : nullptr;
    const auto* ask = object != nullptr ? object->if_contains("ask") : nullptr;
    if (ask == nullptr || !ask->is_string()) return false;
    const auto* rank = object->if_contains("rank");
    if (ask->get_string() == "who") return answer(client.number, callbacks.who()), true;
    if (ask->get_string() == "stop") return answer(client.number, R"({"ok":true})"), callbacks.stop(), true;
    if (ask->get_string() != "look") return false;
    callbacks.look(client.number, rank != nullptr && rank->is_int64() ? static_cast<int>(rank->get_int64()) : -1);
    return true;
  }

  void answer(std::uint64_t number, std::string line) {
    const auto found = clients.find(number);
    if (found == clients.end()) return;
    auto client = found->second;
    client->out = std::move(line) + "\n";
    boost::asio::async_write(client->socket, boost::asio::buffer(client->out),
                             [self = shared_from_this(), client](boost::system::error_code failed, std::size_t) {
                               if (failed || self->closed) return void(self->clients.erase(client->number));
                               self->read(client);
                             });
  }

  node::PrivateFolder folder;
  Callbacks callbacks;
  Protocol::acceptor acceptor;
  Timer again;
  std::map<std::uint64_t, std::shared_ptr<Client>> clients;
  std::uint64_t last = 0;
  bool closed = false;
};

CommandSocket::CommandSocket(std::shared_ptr<State> state) : state_(std::move(state)) {}
CommandSocket::CommandSocket(CommandSocket&&) noexcept = default;

CommandSocket::~CommandSocket() {
  if (!state_) return;
  state_->closed = true;
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
  for (auto& [number, client] : state_->clients) client->socket.close(ignored);
}

Result<CommandSocket> CommandSocket::open(boost::asio::io_context& io,
                                          const std::map<std::string, std::string>& environment, Callbacks callbacks) {
  auto folder = node::PrivateFolder::make(environment);
  if (!folder) return folder.error();
  const auto path = folder->path();
  try {
    auto state = std::make_shared<State>(io, std::move(*folder), std::move(callbacks));
    state->accept();
    return CommandSocket(std::move(state));
  } catch (const boost::system::system_error& refused) {
    return system_error("cannot listen in " + path, refused.code().value());
  }
}

void CommandSocket::answer(std::uint64_t client, std::string line) { state_->answer(client, std::move(line)); }

}  // namespace taas::launch
