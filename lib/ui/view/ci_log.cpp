#include "ui/view/ci_log.hpp"

#include <fmt/format.h>

#include <ctime>
#include <optional>
#include <regex>
#include <utility>

#include "base/environment/environment.hpp"
#include "ui/view/report.hpp"

namespace taas::ui {
namespace {

/// GitHub ends a command at a line's end and decodes these; within a property a colon and a comma mean something too.
std::string escaped(std::string_view text, bool is_property) {
  std::string result;
  for (char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ','));
    result += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return result;
}

struct SourceLine {
  std::string file;
  std::string number;
};

/// Of a traceback the last frame, of a report of faulthandler the first.
std::optional<SourceLine> where_it_failed(const std::vector<std::string>& detail) {
  static const std::regex kFrame(R"re(\s*File "([^"<>]+)", line ([0-9]+)(,?).*)re");
  std::optional<SourceLine> where;
  std::smatch found;
  for (const auto& line : detail) {
    if (!std::regex_match(line, found, kFrame)) continue;
    where = SourceLine{found.str(1), found.str(2)};
    if (found.length(3) == 0) break;
  }
  return where;
}

/// GitLab: "\x1b[0Ksection_start:1560896352:name\r\x1b[0KTitle", in a line of its own.
std::string section(const char* what, int number, const std::string& title) {
  return fmt::format("\x1b[0Ksection_{}:{}:taas_run_{}\r\x1b[0K{}", what, std::time(nullptr), number, title);
}

}  // namespace

CiLog::CiLog(const std::map<std::string, std::string>& environment) {
  if (value_of(environment, "GITHUB_ACTIONS") == "true") {
    service_ = Service::kGitHub;
    workspace_ = value_of(environment, "GITHUB_WORKSPACE");
  } else if (value_of(environment, "GITLAB_CI") == "true") {
    service_ = Service::kGitLab;
  }
}

std::vector<std::string> CiLog::begin_group(const std::string& title) {
  auto lines = end_group();
  if (service_ == Service::kNone) return lines;
  open_ = true;
  ++groups_;
  lines.push_back(service_ == Service::kGitHub ? "::group::" + escaped(title, false)
                                               : section("start", groups_, title));
  return lines;
}

std::vector<std::string> CiLog::end_group() {
  if (!std::exchange(open_, false)) return {};
  return {service_ == Service::kGitHub ? "::endgroup::" : section("end", groups_, "")};
}

std::vector<std::string> CiLog::mark(const run::Verdict& verdict) const {
  if (service_ != Service::kGitHub) return {};
  std::string where;
  if (auto source = where_it_failed(verdict.detail)) {
    where = fmt::format(" file={},line={}", escaped(relative_to(workspace_, source->file), true), source->number);
  }
  return {fmt::format("::error{}::{}", where, escaped(verdict.summary, false))};
}

}  // namespace taas::ui
