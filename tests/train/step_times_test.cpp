#include "step_times.hpp"

#include "catch.hpp"
#include "input_error.hpp"

namespace step_times_test {

using taas::train::Plot;

TEST_CASE("step times are written as JSON, with a curve where there is one") {
  Plot plot{.ylabel = "seconds", .bars = {{"a", {0.5, 0.25}}, {"b", {}}}, .split_sizes = {}, .split_seconds = {}};
  CHECK(taas::train::to_json(plot) ==
        "{\"ylabel\": \"seconds\",\n"
        " \"bars\": [{\"label\": \"a\", \"seconds\": [0.500000, 0.250000]}, {\"label\": \"b\", \"seconds\": []}]}\n");
  plot.bars.clear();
  plot.split_sizes = {1, 2};
  plot.split_seconds = {{1}, {2, 3}};
  CHECK_THAT(taas::train::to_json(plot), ContainsSubstring("\"curve\": {\"split_size\": [1, 2], "
                                                           "\"seconds\": [[1.000000], [2.000000, 3.000000]]}}"));
}

TEST_CASE("a file that cannot be written is named") {
  CHECK_THROWS_WITH(taas::train::check_plot_file("/no/such/folder/times.json"),
                    ContainsSubstring("/no/such/folder/times.json: No such file or directory"));
}

}  // namespace step_times_test
