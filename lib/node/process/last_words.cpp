#include "node/process/last_words.hpp"

#include "base/text.hpp"
#include "run/verdict/traceback.hpp"
#include "ui/text/utf8.hpp"

namespace taas::node {
namespace {

constexpr std::size_t kMaxLines = 200;                // a deep traceback with its chained causes
constexpr std::size_t kMaxLength = 2000;              // of one line; the file has the whole
constexpr auto kSurvived = std::chrono::seconds(10);  // a rank that lives on so long has caught that error

}  // namespace

void LastWords::add(std::string_view coloured, Instant at) {
  auto line = contains(coloured, "\x1b") ? ui::without_escapes(coloured) : std::string(coloured);
  if (run::is_frame_of_torch(line)) return;
  bool survived = at - first_error_at_ > kSurvived;
  if ((first_error_at_ == Instant{} || survived) && run::starts_fatal_error(line)) first_error_at_ = at;
  if (line.size() > kMaxLength) line.resize(kMaxLength);
  lines_.push_back(std::move(line));
  if (lines_.size() > kMaxLines) lines_.pop_front();
}

}  // namespace taas::node
