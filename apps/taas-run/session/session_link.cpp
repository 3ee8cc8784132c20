#include "session/session_link.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/json/json.hpp"
#include "base/unix_address.hpp"
#include "node/process/private_folder.hpp"
#include "proc/spawn/message_socket.hpp"

namespace taas::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{10000};

Result<FoundSession> ask(const std::string& path) {
  auto socket = connect_to_unix(path, SOCK_SEQPACKET);
  if (!socket) return socket.error();
  if (auto told = tell(*socket, {"who"}); !told) return told.error();
  auto said = hear(*socket);
  if (!said) return said.error();
  return FoundSession{std::move(said->state), std::move(said->build), std::move(*socket)};
}

}  // namespace

Result<std::vector<FoundSession>> find_sessions(const Environment& environment) {
  const auto sockets = node::find_in_private_folders(kSessionSocket, environment);
  if (!sockets) return sockets.error();
  std::vector<FoundSession> sessions;
  for (const auto& socket : *sockets) {
    if (auto found = ask(socket.path)) sessions.push_back(std::move(*found));
  }
  std::ranges::sort(sessions, {}, [](const FoundSession& session) { return session.state.name; });
  return sessions;
}

Result<FoundSession> find_session(const std::string& name, const Environment& environment) {
  auto sessions = find_sessions(environment);
  if (!sessions) return sessions.error();
  std::vector<std::string> names;
  for (auto& session : *sessions) {
    if (session.state.name == name) return std::move(session);
    names.push_back(session.state.name);
  }
  const auto make = fmt::format("taas-run up --name {} makes one", name);
  return usage_error_with_fix(
      fmt::format("{}: there is no such session on this machine", name),
      names.empty() ? make
                    : fmt::format("there {}: {}; {}", names.size() == 1 ? "is" : "are", fmt::join(names, ", "), make));
}

Result<> tell(const Fd& session, const SessionAsks& what, const std::vector<int>& descriptors) {
  return send_message(session, boost::json::serialize(to_json(what)), descriptors, kPatience);
}

Result<SessionSays> hear(const Fd& session) {
  auto text = receive_message(session, kPatience);
  if (!text) return text.error();
  if (text->empty()) return unavailable_error("the session has ended");
  const auto json = parse_json(*text);
  return json ? from_json<SessionSays>(*json) : Result<SessionSays>(json.error());
}

std::string build_of_this() {
  struct stat file {};
  if (::stat("/proc/self/exe", &file) != 0) return "";
  return fmt::format("{}.{}.{}.{}", file.st_dev, file.st_ino, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

}  // namespace taas::cli
