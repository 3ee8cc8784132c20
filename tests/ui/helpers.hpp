#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ui/view/renderer.hpp"

namespace taas::ui {

/// Keeps what is written.
struct TextSink : Sink {
  void write(std::string_view bytes) override { text += bytes; }
  std::string text;
};

inline Instant at_ms(long milliseconds) { return Instant(std::chrono::milliseconds(milliseconds)); }

inline OutputLine line(int rank, std::string text, long milliseconds = 0, Stream stream = Stream::kStdout) {
  return {Rank{rank}, stream, std::move(text), false, at_ms(milliseconds)};
}

inline OutputLine progress(int rank, std::string text, long milliseconds, Stream stream = Stream::kStdout) {
  return {Rank{rank}, stream, std::move(text), true, at_ms(milliseconds)};
}

/// `world` ranks, of which the first `shown` are on the console.
inline RendererOptions options_for(int world, int shown = 1) {
  RendererOptions options;
  options.outputs.resize(static_cast<std::size_t>(world));
  for (int rank = 0; rank < shown; ++rank) options.outputs[static_cast<std::size_t>(rank)] = {true, true};
  return options;
}

inline std::vector<Rank> ranks(const std::vector<int>& values) {
  std::vector<Rank> result;
  for (int value : values) result.push_back(Rank{value});
  return result;
}

inline run::Verdict failure(int rank, std::string summary) {
  run::Verdict verdict;
  verdict.cause = run::Cause::kExitCode;
  verdict.culprit = Rank{rank};
  verdict.summary = std::move(summary);
  return verdict;
}

}  // namespace taas::ui
