#include "node/process/last_words.hpp"

#include "run/verdict/traceback.hpp"

namespace taas::node {
namespace {

constexpr std::size_t kMaxLines = 500;    // a chain of deep tracebacks; faulthandler's stacks of many threads
constexpr std::size_t kMaxLength = 2000;  // of one line; the file has the whole
constexpr auto kSurvived = std::chrono::seconds(10);  // a rank that lives on so long has caught that error

}  // namespace

void LastWords::add(std::string_view line, Instant at) {
  bool survived = at - first_error_at_ > kSurvived;
  if ((first_error_at_ == Instant{} || survived) && run::starts_fatal_error(line)) first_error_at_ = at;
  lines_.emplace_back(line.substr(0, kMaxLength));
  if (lines_.size() > kMaxLines) lines_.pop_front();
}

}  // namespace taas::node
