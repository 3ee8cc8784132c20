#include "node/output/private_remarks.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "ui/text/rank_set.hpp"

namespace taas::node {
namespace {

/// "rank 3 wrote 2 files", "ranks 1-7 wrote 7 files".
std::string who_wrote(const std::vector<Rank>& rank_of_file) {
  const auto ranks = ui::format_rank_set(rank_of_file);
  const bool one = ranks.find_first_of(",-") == ranks.npos;
  const auto files = plural(static_cast<std::int64_t>(rank_of_file.size()), "file");
  return fmt::format("rank{} {} wrote {}", one ? "" : "s", ranks, files);
}

}  // namespace

std::vector<std::string> private_remarks(const storage::SortedPrivateFiles& files, const std::string& folder) {
  std::vector<std::string> lines;
  if (!files.dropped.empty()) {
    lines.push_back(who_wrote(files.dropped) + " of the same names as rank 0's, which were dropped");
  }
  if (!files.kept.empty()) {
    lines.push_back(
        fmt::format("{} that rank 0 did not: not published, but kept in {}", who_wrote(files.kept), folder));
  }
  for (const auto& trouble : files.troubles) lines.push_back(trouble + ": what is there was left alone");
  return lines;
}

}  // namespace taas::node
