#include "proc/spawn/oom_score.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/files.hpp"

namespace taas {
namespace {

constexpr const char* kFile = "/proc/self/oom_score_adj";
constexpr int kHighest = 1000;

}  // namespace

ChildOomScore::ChildOomScore() {
  auto own = read_file(kFile);
  if (!own) return;
  int value = 0;
  if (std::from_chars(own->data(), own->data() + own->size(), value).ec != std::errc()) return;
  auto raised = std::min(kHighest, value + kOomScoreOfChildren);
  auto end = std::to_chars(text_.data(), text_.data() + text_.size(), raised).ptr;
  size_ = static_cast<std::size_t>(end - text_.data());
}

void ChildOomScore::apply() const {
  if (size_ == 0) return;
  int file = ::open(kFile, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] auto written = ::write(file, text_.data(), size_);
  ::close(file);
}

}  // namespace taas
