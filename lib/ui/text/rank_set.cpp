#include "ui/text/rank_set.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace taas::ui {

std::string format_rank_set(std::vector<Rank> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text;
  for (std::size_t first = 0; first < ranks.size();) {
    auto last = first;
    while (last + 1 < ranks.size() && ranks[last + 1].value == ranks[last].value + 1) ++last;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", ranks[first].value)
                          : fmt::format("{}-{}", ranks[first].value, ranks[last].value);
    first = last + 1;
  }
  return text;
}

}  // namespace taas::ui
