#include "run/messages/wire.hpp"

#include <boost/mp11/algorithm.hpp>
#include <set>

#include "catch.hpp"

namespace wire_test {

using namespace taas;
using namespace taas::run;

namespace {

constexpr std::size_t kShort = 1 << 20;

std::string long_text() { return std::string(30 << 20, 'x'); }

const Instant kAt{Duration(9007199254740993)};  // more than a double holds exactly

/// What is wrong with a message; "" when nothing is.
std::string complaint(std::string_view text) {
  auto message = decode_coordinator_message(text);
  return message ? "" : message.error().message;
}

template <class Message, class Decode>
std::set<std::string> types_that_come_back(Decode decode) {
  std::set<std::string> types;
  boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, Message>>([&]<class T>(std::type_identity<T>) {
    const auto text = encode(Message(T{}));
    const auto message = decode(text);
    INFO(text);
    REQUIRE(message.has_value());
    CHECK(std::holds_alternative<T>(*message));
    CHECK(encode(*message) == text);
    types.insert(text.substr(0, text.find(',')));
  });
  return types;
}

}  // namespace

TEST_CASE("a message is one object that names its type") {
  CHECK(
      encode(CoordinatorMessage(StartRanks{Generation{2}, 16, 2, {{NodeIndex{1}, Rank{8}, 8}}, "10.0.0.1", 29500})) ==
      R"({"type":"start_ranks","generation":2,"world_size":16,"nodes":2,)"
      R"("shares":[{"node":1,"first_rank":8,"local_world_size":8}],"master_addr":"10.0.0.1","master_port":29500,"servers":[],)"
      R"("output":{"publishes":false,"folder":"","delivers":false,"asks":false,"alone":true},"folded":-1})");
  CHECK(encode(AgentMessage(Refused{"no \xff disk"})) == "{\"type\":\"refused\",\"message\":\"no \xff disk\"}");
  CHECK(encode(CoordinatorMessage(Abandon{})) == R"({"type":"abandon"})");
}

TEST_CASE("every type of message comes back as it was, under its own name") {
  const auto from_agents = types_that_come_back<AgentMessage>(decode_agent_message);
  const auto from_coordinators = types_that_come_back<CoordinatorMessage>(decode_coordinator_message);
  CHECK(from_agents.size() == std::variant_size_v<AgentMessage>);
  CHECK(from_coordinators.size() == std::variant_size_v<CoordinatorMessage>);
}

TEST_CASE("instants and numbers keep all their bits") {
  const auto message = decode_coordinator_message(encode(CoordinatorMessage(HeartbeatEcho{~0ULL, kAt, kAt})));
  REQUIRE(message.has_value());
  const auto& echo = std::get<HeartbeatEcho>(*message);
  CHECK(echo.number == ~0ULL);
  CHECK(echo.received == kAt);
}

TEST_CASE("a rank's end arrives with all its evidence") {
  RankExited exited{Generation{1}, Rank{3}, {1, 0, false}, {}, kAt};
  exited.evidence.last_lines = {"Traceback", "ValueError: \"x\""};
  exited.evidence.first_error_at = kAt;
  const auto message = decode_agent_message(encode(AgentMessage(exited)));
  REQUIRE(message.has_value());
  const auto& back = std::get<RankExited>(*message);
  CHECK(back.evidence.last_lines == exited.evidence.last_lines);
  CHECK(back.evidence.first_error_at == kAt);
  CHECK(back.status.code == 1);
}

TEST_CASE("what is no message is refused with the place") {
  CHECK(complaint("") == "not JSON as expected: incomplete JSON");
  CHECK(complaint("[]") == "a message without a type");
  CHECK(complaint("{}") == "a message without a type");
  CHECK(complaint(R"({"type":1})") == "a message without a type");
  CHECK(complaint(R"({"type":"destroy"})") == "a message of a type that is not known here");
  CHECK(complaint(R"({"type":"hello"})") == "a message of a type that is not known here");
  CHECK(complaint(R"({"type":"settle"})") == "settle.publish: missing");
  CHECK(complaint(R"({"type":"settle","publish":true,"later":1})").empty());
  CHECK(complaint(R"({"type":"start_ranks","generation":0,"world_size":1,"nodes":1,"shares":[{}]})") ==
        "start_ranks.shares[0].node: missing");
  CHECK(complaint(R"({"type":"probe_addresses","addresses":[],"port":65536})") ==
        "probe_addresses.port: not a number in range");
}

TEST_CASE("what matters of a message with a text that is too long arrives") {
  RankExited exited{Generation{2}, Rank{5}, {}, {}, {}};
  exited.status.code = 7;
  exited.evidence.error_file = long_text();
  exited.evidence.last_lines = {"first", long_text(), "last"};
  const auto text = encode(shorten(exited));
  CHECK(text.size() < kShort);
  const auto back = std::get<RankExited>(decode_agent_message(text).value());
  CHECK(back.rank == Rank{5});
  CHECK(back.status.code == 7);
  CHECK(back.evidence.last_lines.size() == 3);
  CHECK(back.evidence.last_lines.back() == "last");
}

TEST_CASE("every text of every message is cut, and short ones stay as they are") {
  CHECK(encode(shorten(Remark{long_text()})).size() < kShort);
  CHECK(encode(shorten(OutputSettled{long_text(), {}, 3})).size() < kShort);
  CHECK(encode(shorten(LoaderFailed{long_text()})).size() < kShort);
  CHECK(encode(shorten(Output{{{Rank{1}, false, false, long_text(), {}, false}}})).size() < kShort);
  CHECK(encode(shorten(Remark{"a word"})) == encode(Remark{"a word"}));
}

}  // namespace wire_test
