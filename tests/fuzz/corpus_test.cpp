// Fuzzing finds little in a message that the corpus does not begin with.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "catch.hpp"
#include "run/messages/wire.hpp"

namespace corpus_test {

using namespace taas::run;

namespace {

/// The kinds of message that the files of a corpus hold.
template <class Decode>
std::set<std::size_t> kinds_in(const std::string& corpus, Decode decode) {
  std::set<std::size_t> kinds;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TAAS_CORPUS) + "/" + corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const auto message = decode(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
    if (message) kinds.insert(message->index());
    if (!message) UNSCOPED_INFO(entry.path().filename().string() << ": " << message.error().message);
  }
  return kinds;
}

}  // namespace

TEST_CASE("the corpora have every kind of message") {
  CHECK(kinds_in("agent_message", decode_agent_message).size() == std::variant_size_v<AgentMessage>);
  CHECK(kinds_in("coordinator_message", decode_coordinator_message).size() == std::variant_size_v<CoordinatorMessage>);
}

}  // namespace corpus_test
