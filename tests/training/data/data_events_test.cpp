#include "training/data/data_events.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <boost/json/parse.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/fd.hpp"
#include "catch.hpp"

namespace data_events_test {

using namespace taas;
namespace json = boost::json;

namespace {

/// The launcher's end of TAAS_EVENTS.
class Launcher {
 public:
  Launcher() {
    REQUIRE(::mkdtemp(folder_) != nullptr);
    const std::string path = std::string(folder_) + "/events";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    ::setenv("TAAS_EVENTS", path.c_str(), 1);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  ~Launcher() {
    ::unsetenv("TAAS_EVENTS");
    std::filesystem::remove_all(folder_);
  }

  json::value hear() {
    char text[4096];
    const auto size = ::recv(socket_.get(), text, sizeof text, MSG_DONTWAIT);
    return size < 0 ? json::value() : json::parse({text, static_cast<std::size_t>(size)});
  }

 private:
  char folder_[32] = "/tmp/taas-events-XXXXXX";
  Fd socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

std::map<std::string, json::value> reports() {
  std::map<std::string, json::value> by_kind;
  std::ifstream file(TAAS_CONTRACT "/reports.jsonl");
  for (std::string line; std::getline(file, line);) {
    auto report = json::parse(line);
    by_kind.emplace(report.at("kind").as_string(), report);
  }
  return by_kind;
}

}  // namespace

TEST_CASE("reports have the form that the launcher reads") {
  Launcher launcher;
  report_data({.rank = 3,
               .loader = "train",
               .samples = 10,
               .batches = 2,
               .bytes = 3'000'000'000,
               .seconds = 1.5,
               .waited = 0.25,
               .buffered = 4,
               .workers = 5,
               .hedged = 6,
               .done = true});
  CHECK(launcher.hear() == reports().at("data"));
  remark_on_data("four words for people");
  CHECK(launcher.hear() == reports().at("remark"));
}

}  // namespace data_events_test
