#include "taas/scalars.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "taas/error.hpp"

namespace taas {
namespace {

using Clock = std::chrono::steady_clock;

/// What is closed is published (docs/output.md), as a copy of the whole file.
constexpr auto kBetweenCloses = std::chrono::seconds(10);

std::string variable_or(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

std::string in_json(double value) {
  if (std::isnan(value)) return R"("NaN")";
  if (std::isinf(value)) return value > 0 ? R"("Infinity")" : R"("-Infinity")";
  std::array<char, 32> text{};  // 24 characters are the most that a double needs
  const auto [end, none] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

class ScalarFile {
 public:
  void write(const std::string& line) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (file_ && now - opened_ >= kBetweenCloses) file_.reset();
    if (!file_) {
      file_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
      opened_ = now;
    }
    if (!file_) throw Exception(path_ + ": " + std::strerror(errno));
    if (const auto written = write_all(file_, line); !written) throw Exception(path_ + ": " + written.error().message);
  }

 private:
  std::mutex mutex_;
  std::string path_ =
      variable_or("TAAS_OUTPUT_DIR", ".") + "/scalars-" + variable_or("TORCHELASTIC_RESTART_COUNT", "0") + ".jsonl";
  Fd file_;
  Clock::time_point opened_{};
};

}  // namespace

void log_scalar(std::string_view name, double value, std::int64_t step) {
  static const bool kWrites = variable_or("RANK", "0") == "0";
  if (!kWrites) return;
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  static ScalarFile file;
  file.write(R"({"wall_time": )" + in_json(static_cast<double>(now.count()) / 1000) + R"(, "step": )" +
             std::to_string(step) + R"(, "name": )" + boost::json::serialize(boost::json::string(name)) +
             R"(, "value": )" + in_json(value) + "}\n");
}

}  // namespace taas
