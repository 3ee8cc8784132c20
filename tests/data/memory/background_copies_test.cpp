#include "data/memory/background_copies.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "catch.hpp"

namespace background_copies_test {

using namespace taas::data;

namespace {

std::vector<std::byte> drawn(std::size_t bytes, std::uint32_t seed) {
  std::vector<std::byte> memory(bytes);
  std::mt19937 draw(seed);
  for (std::size_t i = 0; i < bytes; i += 61) memory[i] = static_cast<std::byte>(draw());
  return memory;
}

}  // namespace

TEST_CASE("copies in the background have the right bytes, whatever their sizes") {
  std::mt19937 draw(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<std::byte>> sources, targets;
    std::vector<CopyPart> parts;
    for (int i = 0; i < 5; ++i) {
      sources.push_back(drawn(draw() % (round % 2 == 0 ? 5'000 : 3'000'000), draw()));
      targets.emplace_back(sources.back().size());
    }
    for (int i = 0; i < 5; ++i) parts.push_back({targets[i].data(), sources[i]});
    BackgroundCopy copy(parts);
    copy.wait();
    CHECK(targets == sources);
  }
}

TEST_CASE("a copy that is let go is done, and several are under way at once") {
  const auto source = drawn(8'000'000, 1);
  std::vector<std::vector<std::byte>> targets(6, std::vector<std::byte>(source.size()));
  {
    std::vector<std::unique_ptr<BackgroundCopy>> copies;
    for (auto& target : targets)
      copies.push_back(std::make_unique<BackgroundCopy>(std::vector<CopyPart>{{target.data(), source}}));
  }
  for (const auto& target : targets) CHECK(target == source);
}

TEST_CASE("a forked child can wait for a copy, begin one, and let one go") {
  const auto source = drawn(8'000'000, 2);
  std::vector<std::byte> target(source.size()), other(source.size());
  auto copy = std::make_unique<BackgroundCopy>(std::vector<CopyPart>{{target.data(), source}});
  const auto child = ::fork();
  if (child == 0) {
    copy->wait();
    BackgroundCopy own({{other.data(), source}});
    own.wait();
    copy.reset();
    ::_exit(target == source && other == source ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  copy->wait();
  CHECK(target == source);
}

}  // namespace background_copies_test
