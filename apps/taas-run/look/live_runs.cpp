#include "look/live_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/unix_address.hpp"
#include "launch/command_socket.hpp"
#include "node/process/private_folder.hpp"

namespace taas::cli {
namespace {

constexpr int kPatienceSeconds = 10;  // agents that do not answer are given up sooner

Result<Fd> connect_to(const std::string& path) {
  auto socket = connect_to_unix(path, SOCK_STREAM);
  if (!socket) return socket;
  const timeval patience{kPatienceSeconds, 0};
  ::setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return socket;
}

std::string text_of(const boost::json::object& object, const char* name) {
  const auto* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

Result<std::string> ask_run(const Fd& socket, const std::string& question) {
  if (auto sent = write_all(socket, question + "\n"); !sent) return sent.error();
  std::string answer;
  char piece[65536];
  while (!answer.ends_with('\n')) {
    const auto length = ::recv(socket.get(), piece, sizeof piece, 0);
    if (length < 0 && errno == EINTR) continue;
    if (length == 0) return unavailable_error("the run has ended");
    if (length < 0) return unavailable_error(fmt::format("the run did not answer within {} s", kPatienceSeconds));
    answer.append(piece, static_cast<std::size_t>(length));
  }
  return answer;
}

Result<std::vector<LiveRun>> find_live_runs(const Environment& environment) {
  const auto sockets = node::find_in_private_folders(launch::kCommandSocket, environment);
  if (!sockets) return sockets.error();
  std::vector<LiveRun> runs;
  for (const auto& found : *sockets) {
    auto socket = connect_to(found.path);
    auto said = socket ? ask_run(*socket, R"({"ask":"who"})") : socket.error();
    const auto who = said ? parse_json(*said) : said.error();
    if (!who || !who->is_object()) continue;
    runs.push_back(
        {text_of(who->get_object(), "run"), text_of(who->get_object(), "folder"), std::move(*socket), found.made});
  }
  std::ranges::sort(runs, [](const LiveRun& a, const LiveRun& b) {
    return a.began.tv_sec != b.began.tv_sec ? a.began.tv_sec > b.began.tv_sec : a.began.tv_nsec > b.began.tv_nsec;
  });
  return runs;
}

Result<LiveRun> choose_live_run(std::vector<LiveRun> runs, const std::string& wanted) {
  if (runs.empty()) {
    return usage_error_with_fix("no run of yours is under way on this machine",
                                "one over several machines is looked at where it was started");
  }
  if (wanted.empty()) return std::move(runs.front());
  std::vector<std::string> names;
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    names.push_back(runs[i].name);
    if (runs[i].name == wanted) return std::move(runs[i]);
    if (!runs[i].name.starts_with(wanted)) continue;
    if (chosen)
      return usage_error(fmt::format("{}: several runs begin so: {}, {}", wanted, runs[*chosen].name, runs[i].name));
    chosen = i;
  }
  if (chosen) return std::move(runs[*chosen]);
  return usage_error_with_fix(fmt::format("{}: no such run is under way on this machine", wanted),
                              fmt::format("there {}: {}", names.size() == 1 ? "is" : "are", fmt::join(names, ", ")));
}

}  // namespace taas::cli
