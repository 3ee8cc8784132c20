// Runs a fuzzer's entry point over every file of the corpus folder, then over seeded mutations of those files: the part
// of fuzzing that takes a second, needs no special compiler and is the same every time. Memory is limited, as it is for
// the fuzzers: inputs are short, and no short input may take much.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr int kRounds = 5000;
constexpr std::size_t kMaxInput = 4096;
using Random = std::minstd_rand;  // the same numbers with every standard library

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::vector<std::string> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

void mutate(std::string& input, const std::string& other, Random& random) {
  const auto at = input.empty() ? 0 : random() % input.size();
  switch (random() % 5) {
    case 0:
      input.insert(at, 1, static_cast<char>(random()));
      break;
    case 1:
      input.erase(at, 1 + random() % 8);
      break;
    case 2:
      if (!input.empty()) input[at] = static_cast<char>(random());
      break;
    case 3:
      if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
      break;
    default:
      input = input.substr(0, at) + other.substr(other.empty() ? 0 : random() % other.size());
      break;
  }
  if (input.size() > kMaxInput) input.resize(kMaxInput);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TAAS_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TAAS_SANITIZED
#endif

/// Sanitizers reserve more than any limit allows.
void limit_memory() {
#ifndef TAAS_SANITIZED
  constexpr rlimit kLimit{std::size_t{512} << 20, std::size_t{512} << 20};
  ::setrlimit(RLIMIT_DATA, &kLimit);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const auto corpus = argc == 2 ? read_corpus(argv[1]) : std::vector<std::string>();
  if (corpus.empty()) {
    std::fprintf(stderr, "usage: %s FOLDER (with at least one input)\n", argv[0]);
    return EXIT_FAILURE;
  }
  limit_memory();
  for (const auto& input : corpus) run(input);
  Random random(1);
  for (int round = 0; round < kRounds; ++round) {
    auto input = corpus[random() % corpus.size()];
    for (auto changes = 1 + random() % 4; changes > 0; --changes) {
      mutate(input, corpus[random() % corpus.size()], random);
    }
    run(input);
  }
  std::printf("%zu inputs and %d mutations of them\n", corpus.size(), kRounds);
}
