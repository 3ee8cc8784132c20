#include "data/server/server.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "data/server/server_state.hpp"

namespace taas::data {

namespace {

/// Each buffer is made to begin at a multiple of the alignment.
std::vector<std::span<const std::byte>> align(const std::vector<std::span<const std::byte>>& buffers) {
  static constexpr std::array<std::byte, kBufferAlignment> kZeros{};
  std::vector<std::span<const std::byte>> aligned;
  std::size_t at = 0;
  for (const auto& buffer : buffers) {
    if (const auto past = at % kBufferAlignment; past != 0) {
      aligned.push_back(std::span(kZeros).first(kBufferAlignment - past));
      at += kBufferAlignment - past;
    }
    if (buffer.empty()) continue;
    aligned.push_back(buffer);
    at += buffer.size();
  }
  return aligned;
}

FrameHeader header_for(FrameKind kind, const Job& job) {
  return {.kind = kind, .stream = job.stream, .number = job.number, .attempt = job.attempt};
}

/// An exception that fits into a frame: without the pickle, and with the end of its text, where it does not.
Raised cut(Raised what) {
  constexpr std::size_t kLastWords = std::size_t{1} << 20;
  if (what.text.size() + what.pickled.size() > most_payload(FrameKind::kRaised)) {
    what.pickled.clear();
    if (what.text.size() > kLastWords) what.text.erase(0, what.text.size() - kLastWords);
  }
  what.type.resize(std::min<std::size_t>(what.type.size(), most_description(FrameKind::kRaised)));
  return what;
}

}  // namespace

Server::Server(ServerOptions options) : state_(std::make_shared<State>(std::move(options))) {}

Server::~Server() {
  if (::getpid() == state_->process) {
    state_->stop();
  } else {
    static_cast<void>(new std::shared_ptr<State>(state_));  // a forked child: its threads are not here
  }
}

std::optional<Job> Server::take(Duration patience) {
  state_->accept();
  return state_->jobs.take(patience);
}

std::shared_ptr<const ReceivedDefinition> Server::definition(const std::string& digest) const {
  return state_->jobs.definition(digest);
}

void Server::loaded(const std::string& digest) { state_->jobs.let_go_of_definition(digest); }

void Server::unloaded(const std::string& digest) { state_->jobs.forget_definition(digest); }

void Server::put(const Job& job, const std::vector<std::span<const std::byte>>& buffers, std::shared_ptr<void> keep) {
  auto header = header_for(FrameKind::kBatch, job);
  header.number = state_->jobs.microseconds_on(job);
  state_->jobs.answer(job, {.header = header, .description = {}, .buffers = align(buffers), .keep = std::move(keep)});
}

void Server::raise(const Job& job, const Raised& what) {
  auto sent = cut(what);
  auto header = header_for(FrameKind::kRaised, job);
  header.value = sent.text.size();
  state_->jobs.answer(job, text_frame(header, std::move(sent.type), sent.text + sent.pickled));
}

void Server::give_back(const Job& job, std::string why) {
  why.resize(std::min<std::size_t>(why.size(), most_description(FrameKind::kReturned)));
  state_->jobs.answer(job, frame_of(header_for(FrameKind::kReturned, job), std::move(why)));
}

bool Server::is_withdrawn(const Job& job) const { return state_->jobs.is_withdrawn(job); }

std::vector<std::string> Server::take_remarks() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->remarks, {});
}

}  // namespace taas::data
