#include "base/log/log_settings.hpp"
#include "flags/setters.hpp"
#include "plan/streams.hpp"

namespace taas::cli {
namespace {

using Kind = Flag::Kind;
using Origin = Flag::Origin;

Result<> store_color(plan::Options& options, const std::string& text) {
  using plan::Color;
  return store_choice(options.output.color, text,
                      {{"auto", Color::kAuto}, {"always", Color::kAlways}, {"never", Color::kNever}});
}

Result<> store_rank_output(plan::Options& options, const std::string& text) {
  using plan::RankFiles;
  return store_choice(options.output.ranks, text,
                      {{"all", RankFiles::kAll}, {"private", RankFiles::kPrivate}, {"none", RankFiles::kNone}});
}

Result<> store_verbosity(plan::Options& options, const std::string& text, plan::Verbosity verbosity) {
  auto wanted = read_switch(text);
  if (!wanted) return wanted.error();
  if (*wanted) options.output.verbosity = verbosity;
  return {};
}

Result<> check_log_level(std::string_view text) {
  auto settings = parse_log_settings(text);
  if (!settings) return settings.error();
  return {};
}

constexpr Flag kOutputFlags[] = {
    {"output", 0, "DIR", "Folder of all runs; ranks write below $TAAS_OUTPUT_DIR (default: ./taas-runs)",
     [](auto& options, const auto& values) -> Result<> {
       options.output.directory = values.back();
       if (!values.back().empty()) return {};
       return usage_error("the folder's name is empty");
     },
     Origin::kOwn},
    {"protect", 0, "DIR", "Make a folder read-only for ranks other than 0 and data workers; may be repeated",
     [](auto& options, const auto& values) {
       options.output.protected_directories = values;
       return Result<>();
     },
     Origin::kOwn, Kind::kRepeatable},
    {"protect-except", 0, "DIR", "A folder within a protected one that every rank may write to; may be repeated",
     [](auto& options, const auto& values) {
       options.output.unprotected = values;
       return Result<>();
     },
     Origin::kOwn, Kind::kRepeatable},
    {"rank-output", 0, "all|private|none",
     "Files of ranks other than 0 in $TAAS_OUTPUT_DIR: published, kept apart or refused (default: all)",
     [](auto& options, const auto& values) { return store_rank_output(options, values.back()); }, Origin::kOwn},
    {"log-dir", 0, "DIR", "Log files in torchrun's layout (default: in the run's folder)",
     [](auto& options, const auto& values) {
       options.output.log_dir = values.back();
       if (values.back().empty()) options.output.log_dir.reset();
       return Result<>();
     }},
    {"log-level", 0, "LEVEL",
     "Detail of the launcher's own log, as in debug,net=trace (default: TAAS_LOG, else warning)",
     [](auto& options, const auto& values) {
       return store_checked(options.output.log_level, values.back(), check_log_level);
     },
     Origin::kOwn},
    {"redirects", 'r', "SPEC", "Streams of rank 0 that go to its log files only: 1 stdout, 2 stderr, 3 both",
     [](auto& options, const auto& values) {
       return store_checked(options.output.redirects, values.back(), plan::check_stream_choice);
     },
     Origin::kTorchrun, Kind::kCommaList},
    {"tee", 't', "SPEC", "Streams that are shown as well: 3 all of all ranks, 0:1,1:3 by local rank",
     [](auto& options, const auto& values) {
       return store_checked(options.output.tee, values.back(), plan::check_stream_choice);
     },
     Origin::kTorchrun, Kind::kCommaList},
    {"local-ranks-filter", 0, "LIST", "Show only these local ranks of each node, as in 0,1",
     [](auto& options, const auto& values) {
       return store(options.output.local_ranks_filter, read_integers(values.back()));
     },
     Origin::kTorchrun, Kind::kCommaList},
    {"log-line-prefix-template", 0, "TEXT", "Prefix of lines, with ${role_name}, ${local_rank}, ${rank}, ${hostname}",
     [](auto& options, const auto& values) {
       options.output.prefix_template = values.back();
       return Result<>();
     }},
    {"quiet", 'q', "", "Show only the program's output and failures",
     [](auto& options, const auto& values) { return store_verbosity(options, values.back(), plan::Verbosity::kQuiet); },
     Origin::kOwn},
    {"verbose", 'v', "", "Show each step of the launcher",
     [](auto& options, const auto& values) {
       return store_verbosity(options, values.back(), plan::Verbosity::kVerbose);
     },
     Origin::kOwn},
    {"color", 0, "auto|always|never", "Colours on the console (default: auto, where it is a terminal)",
     [](auto& options, const auto& values) { return store_color(options, values.back()); }, Origin::kOwn},
    {"json", 0, "", "Write everything as JSON, one object a line",
     [](auto& options, const auto& values) { return store(options.output.json, read_switch(values.back())); },
     Origin::kOwn},
};

}  // namespace

FlagGroup output_flags() { return {"Output", kOutputFlags}; }

}  // namespace taas::cli
