#include "plan/streams.hpp"

#include "catch.hpp"

namespace streams_test {

using namespace taas;
using namespace taas::plan;

namespace {

/// Two nodes with two ranks each.
std::vector<RankPlace> four_ranks() { return place_ranks(share_ranks(std::vector<int>{2, 2})); }

/// What the console shows, by rank: "-" nothing, "o" stdout, "e" stderr, "b" both.
std::string shown(const std::string& redirects, const std::string& tee, std::vector<int> filter = {}) {
  OutputOptions options;
  options.redirects = redirects;
  options.tee = tee;
  options.local_ranks_filter = std::move(filter);
  auto outputs = decide_streams(options, four_ranks());
  REQUIRE(outputs.has_value());
  std::string text;
  for (const auto& output : *outputs) {
    text += "-oeb"[(output.stdout_on_console ? 1 : 0) + (output.stderr_on_console ? 2 : 0)];
  }
  return text;
}

}  // namespace

TEST_CASE("the console shows rank 0 and what was asked for") {
  CHECK(shown("0", "0") == "b---");
  SECTION("-t adds streams of local ranks, on every node") {
    CHECK(shown("0", "3") == "bbbb");
    CHECK(shown("0", "1") == "booo");
    CHECK(shown("0", "1:2") == "be-e");
    CHECK(shown("0", "0:1,1:3") == "bbob");
    CHECK(shown("0", "17:3") == "b---");
  }
  SECTION("-r takes streams off that were shown by default") {
    CHECK(shown("3", "0") == "----");
    CHECK(shown("1", "0") == "e---");
    CHECK(shown("1:3", "0") == "b---");
    CHECK(shown("3", "2") == "eeee");
  }
  SECTION("a filter chooses local ranks") {
    CHECK(shown("0", "0", {1}) == "-b-b");
    CHECK(shown("0", "0", {0, 1}) == "bbbb");
    CHECK(shown("0", "3", {0}) == "b-b-");
    CHECK(shown("0", "0:1", {0, 1}) == "bbbb");
    CHECK(shown("2", "0", {1}) == "-o-o");
    CHECK(shown("0", "0", {9}) == "----");
  }
}

TEST_CASE("a local rank that no node has is named") {
  OutputOptions options;
  options.tee = "0:1,1:3";
  options.local_ranks_filter = {1, 0};
  CHECK(check_local_ranks(options, 2).has_value());
  auto fails = [&options](int most) { return check_local_ranks(options, most).error().message; };
  CHECK(fails(1) == "--tee 0:1,1:3: there is no local rank 1; the largest of a node is 0");
  options.tee = "3";
  CHECK(fails(1) == "--local-ranks-filter 1,0: there is no local rank 1; the largest of a node is 0");
  options.redirects = "5:3";
  CHECK(fails(2) == "--redirects 5:3: there is no local rank 5; the largest of a node is 1");
}

TEST_CASE("a wrong choice of streams is named") {
  for (auto text : {"", "4", "33", "0:4", "0:", ":1", "a:1", "0:1,", "0:1;1:2", "-1:1"}) {
    CAPTURE(text);
    CHECK(check_stream_choice(text).has_error());
    OutputOptions options;
    options.tee = text;
    auto outputs = decide_streams(options, four_ranks());
    REQUIRE(outputs.has_error());
    CHECK(outputs.error().message == "--tee " + std::string(text) +
                                         ": not a choice of streams; 0 is none, 1 stdout, 2 stderr, 3 both, or by "
                                         "local rank: 0:1,1:3");
  }
}

}  // namespace streams_test
