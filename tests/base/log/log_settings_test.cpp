#include "base/log/log_settings.hpp"

#include "catch.hpp"

namespace log_settings_test {

using namespace taas;

LogLevel level_of(const LogSettings& settings, LogPart part) {
  return settings.levels.at(static_cast<std::size_t>(part));
}

TEST_CASE("without a wish, the log keeps warnings") {
  auto settings = parse_log_settings("").value();
  CHECK(level_of(settings, LogPart::kNet) == LogLevel::kWarning);
  CHECK_FALSE(settings.console);
}

TEST_CASE("a part has its own level wherever it stands in the list") {
  for (const auto* text : {"debug,net=trace", "net=trace, debug"}) {
    auto settings = parse_log_settings(text).value();
    CHECK(level_of(settings, LogPart::kNet) == LogLevel::kTrace);
    CHECK(level_of(settings, LogPart::kAgent) == LogLevel::kDebug);
  }
}

TEST_CASE("standard error is one more word of the list") {
  auto settings = parse_log_settings("console,info").value();
  CHECK(settings.console);
  CHECK(level_of(settings, LogPart::kData) == LogLevel::kInfo);
}

TEST_CASE("a word that is neither is named, with those that are known") {
  CHECK(parse_log_settings("loud").error().message ==
        "loud: not a level of the log: trace, debug, info, warning, error, off");
  CHECK(parse_log_settings("debug,net=").error().message ==
        ": not a level of the log: trace, debug, info, warning, error, off");
  CHECK(parse_log_settings("disk=debug").error().message ==
        "disk: not a part with a log: coordinator, agent, process, net, store, storage, data, training");
  CHECK(parse_log_settings("debug,\n").error().code == ErrorCode::kUsage);
}

}  // namespace log_settings_test
