#include "node/output/delivery.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/ids.hpp"
#include "catch.hpp"
#include "launch/output/incoming_output.hpp"
#include "run_until.hpp"

namespace delivery_test {

using namespace taas;
using namespace taas::node;
namespace fs = std::filesystem;

namespace {

constexpr run::AgentId kAgent{3};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Goes last, when nobody works in it any more.
struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / ("taas-delivery-" + random_hex(6));
  TemporaryFolder() = default;
  ~TemporaryFolder() { fs::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
};

/// A node's folder, a coordinator's, and a link between them that can be cut: frames go one way, answers the other.
struct Link {
  TemporaryFolder temporary;
  fs::path folder = temporary.path;
  std::string sent = made(folder / "node");
  std::string came = made(folder / "run/output");
  boost::asio::io_context io;
  std::size_t frames = 0;
  std::size_t cut_after = ~std::size_t{};
  std::vector<std::string> warnings;
  std::vector<std::string> failures;
  std::optional<Error> broken;
  launch::IncomingOutput incoming{io,
                                  HeldFolder::open((folder / "run").string()).value(),
                                  {[this](run::AgentId to, const run::CoordinatorMessage& answer) { hear(to, answer); },
                                   [this](std::string text) { warnings.push_back(std::move(text)); }}};
  Delivery delivery{io, options()};

  Link() { incoming.receive({kAgent, "host1", "output"}); }

  static std::string made(const fs::path& path) {
    fs::create_directories(path);
    return path.string();
  }
  DeliveryOptions options() {
    DeliveryOptions made;
    made.files = sent;
    made.send = [this](const std::string& frame) { carry(frame); };
    made.on_failure = [this](const std::string& why) { failures.push_back(why); };
    return made;
  }
  void carry(const std::string& frame) {
    if (++frames > cut_after) return;
    if (auto heard = incoming.hear(kAgent, frame); !heard) broken = heard.error();
  }
  /// As over a link: not within the call that it answers.
  void hear(run::AgentId to, const run::CoordinatorMessage& answer) {
    CHECK(to == kAgent);
    boost::asio::post(io, [this, answer] {
      if (frames > cut_after) return;
      if (const auto* progress = std::get_if<run::FileProgress>(&answer)) delivery.hear(*progress);
      if (const auto* stored = std::get_if<run::FileStored>(&answer)) delivery.hear(*stored);
    });
  }
  void publish(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(sent + "/" + name).parent_path());
    std::ofstream(sent + "/" + name + ".new", std::ios::binary) << text;
    fs::rename(sent + "/" + name + ".new", sent + "/" + name);
    delivery.add(name);
  }
  std::string settle() {
    std::optional<std::string> result;
    delivery.settle([&](std::string error) { result = std::move(error); });
    REQUIRE(run_until(io, [&] { return result.has_value(); }));
    return *result;
  }
};

std::string large() {
  std::string text;
  while (text.size() < 3'000'001) text += "line " + std::to_string(text.size()) + "\n";
  return text;
}

}  // namespace

TEST_CASE("what is published arrives, whole and with its mode") {
  Link link;
  link.publish("d/large", large());
  link.publish("empty", "");
  link.publish("\xff", "bytes");
  fs::create_symlink("d/large", link.sent + "/last");
  link.delivery.add("last");
  ::chmod((link.sent + "/empty").c_str(), 0700);
  CHECK(link.settle() == "");
  CHECK(read(link.came + "/d/large") == large());
  CHECK(read(link.came + "/last") == large());
  CHECK(read(link.came + "/\xff") == "bytes");
  struct stat found {};
  REQUIRE(::stat((link.came + "/empty").c_str(), &found) == 0);
  CHECK((found.st_mode & 0700) == 0700);
  CHECK_FALSE(link.broken);
}

TEST_CASE("a file that is published again while it is on its way arrives in its newest form") {
  Link link;
  link.publish("a", large());
  REQUIRE(run_until(link.io, [&] { return link.frames > 3; }));
  link.publish("a", "new");
  CHECK(link.settle() == "");
  CHECK(read(link.came + "/a") == "new");
}

TEST_CASE("a file on its way begins anew with a new link, and nothing half stays") {
  Link link;
  link.cut_after = 5;
  link.publish("a", large());
  link.publish("b", "text");
  REQUIRE(run_until(link.io, [&] { return link.frames > 5; }));
  link.incoming.forget(kAgent);
  REQUIRE(link.warnings.size() == 1);
  CHECK_THAT(link.warnings.front(), ContainsSubstring("host1 was lost while a was on its way"));
  CHECK(fs::is_empty(link.came));
  link.cut_after = ~std::size_t{};
  link.incoming.receive({kAgent, "host1", "output"});
  link.delivery.begin_anew();
  CHECK(link.settle() == "");
  CHECK(read(link.came + "/a") == large());
  CHECK(read(link.came + "/b") == "text");
}

TEST_CASE("a file that cannot be stored is told, tried again at the end, and named") {
  Link link;
  fs::create_directories(link.came + "/a");  // a folder of this name is in the way
  link.publish("a", "text");
  link.publish("b", "text");
  REQUIRE(run_until(link.io, [&] { return link.failures.size() == 1; }));
  CHECK_THAT(link.settle(),
             ContainsSubstring("cannot publish " + link.came + "/a") && ContainsSubstring("it stays in " + link.sent));
  CHECK(link.failures.size() == 1);  // the same again is not told twice
  CHECK(read(link.came + "/b") == "text");
}

TEST_CASE("what stood in the way is gone at the end") {
  Link link;
  fs::create_directories(link.came + "/a");
  link.publish("a", "text");
  REQUIRE(run_until(link.io, [&] { return link.failures.size() == 1; }));
  fs::remove(link.came + "/a");
  CHECK(link.settle() == "");
  CHECK(read(link.came + "/a") == "text");
}

TEST_CASE("a file that is gone is an error, and the others come") {
  Link link;
  link.delivery.add("missing");
  link.publish("b", "text");
  CHECK_THAT(link.settle(), ContainsSubstring("cannot read " + link.sent + "/missing"));
  CHECK(read(link.came + "/b") == "text");
}

TEST_CASE("an agent that nobody asked for files, or that sends nonsense, breaks the rules") {
  Link link;
  auto offer = run::encode(run::FileOffer{1, 5, 0644, 0, "a", ""});
  CHECK_FALSE(link.incoming.hear(run::AgentId{9}, offer).has_value());
  CHECK_FALSE(link.incoming.hear(kAgent, std::string("\0\x09", 2)).has_value());
  CHECK(link.incoming.hear(kAgent, offer).has_value());
  CHECK_FALSE(link.incoming.hear(kAgent, offer).has_value());
}

TEST_CASE("what ranks have put in the place of published files is not sent, and not waited for") {
  Link link;
  fs::create_directories(link.folder / "victim");
  std::ofstream(link.folder / "victim/key") << "secret";
  fs::create_directory_symlink(link.folder / "victim", link.sent + "/linked");
  REQUIRE(::mkfifo((link.sent + "/pipe").c_str(), 0600) == 0);
  link.delivery.add("linked/key");
  link.delivery.add("pipe");
  link.publish("model", "text");
  const auto error = link.settle();
  CHECK_THAT(error, ContainsSubstring("linked is a symbolic link to ") || ContainsSubstring("pipe is a named pipe"));
  CHECK(read(link.came + "/model") == "text");
  CHECK_FALSE(fs::exists(link.came + "/linked"));
  CHECK_FALSE(fs::exists(link.came + "/pipe"));
}

}  // namespace delivery_test
