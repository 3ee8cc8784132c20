#include "ui/text/prefix.hpp"

#include "catch.hpp"
#include "ui/helpers.hpp"

namespace prefix_test {

using namespace taas;
using namespace taas::ui;

TEST_CASE("torchrun's prefix template is filled") {
  const PrefixFields fields{"trainer", 3, Rank{11}, "node-1"};
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", ""},
      {"${hostname}:${rank}: ", "node-1:11: "},
      {"[${role_name}${local_rank}]:", "[trainer3]:"},
      {"$rank $local_rank|", "11 3|"},
      {"$$rank", "$rank"},
      {"${unknown} $other", "${unknown} $other"},
      {"cost: $", "cost: $"},
      {"$ x", "$ x"},
      {"${rank", "${rank"},
      {"${rank}${rank}", "1111"},
      {"$rank_x", "$rank_x"},
  };
  for (const auto& [pattern, expected] : cases) CHECK(expand_prefix(pattern, fields) == expected);
}

TEST_CASE("the built-in prefix names the ranks") {
  CHECK(rank_prefix(ranks({3})) == "[3] ");
  CHECK(rank_prefix(ranks({0, 2, 3})) == "[0,2-3] ");
}

}  // namespace prefix_test
