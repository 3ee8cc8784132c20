#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/error.hpp"
#include "ui/view/runs_page.hpp"

namespace taas::cli {

/// All runs of an output folder, the newest first, by their journals: those of other users and hosts, too, and of older
/// releases, as far as their journals tell. A folder that is none of a run's is left out.
Result<std::vector<ui::RunSummary>> find_runs(const std::string& output, const Environment& environment);

/// By its number, its folder's name or the beginning of it that no other one has, or "latest"; without a name the
/// newest. The error names what there is.
Result<ui::RunSummary> choose_run(const std::vector<ui::RunSummary>& runs, const std::string& wanted,
                                  const std::string& output);

/// The lines of a run's journal, in order; lines that are no JSON, such as the last one of a launcher that was killed,
/// are left out.
std::vector<boost::json::object> read_journal(const std::string& folder);

/// A member of such a line; empty, or 0, where there is none of that kind.
std::string text_in(const boost::json::object& object, const char* name);
int integer_in(const boost::json::object& object, const char* name);

/// Whether the end of a run is in its journal.
bool has_ended(const std::string& folder);

/// Whether files of ranks wait there that were not published: what is in it is nowhere else.
bool has_unpublished_files(const std::string& folder);

}  // namespace taas::cli
