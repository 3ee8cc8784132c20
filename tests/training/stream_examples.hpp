#pragma once

#include <ATen/Functions.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "taas/dataset.hpp"

namespace taas::test {

/// Notes that an example is read, by whichever process, in the file TAAS_TEST_GETS: a byte for each.
inline void note_get() {
  if (const char* path = std::getenv("TAAS_TEST_GETS")) std::ofstream(path, std::ios::app) << '.';
}

/// A stream of `size` examples, of which each shard has every count()th. Draws numbers when a pass begins, and for each
/// example. One of them cannot be read.
class Lines : public IterableDataset {
 public:
  explicit Lines(std::size_t size, std::size_t unreadable = SIZE_MAX) : size_(size), unreadable_(unreadable) {}
  std::unique_ptr<Examples> examples(const Shard& shard) override {
    return std::make_unique<Pass>(*this, shard, at::rand({2}));
  }

 private:
  struct Pass : Examples {
    Pass(const Lines& lines, const Shard& shard, at::Tensor drawn)
        : size(lines.size_),
          unreadable(lines.unreadable_),
          next_line(shard.index()),
          step(shard.count()),
          noise(std::move(drawn)) {}
    std::optional<Tensors> next() override {
      auto line = next_line;
      if (line >= size) return std::nullopt;
      next_line += step;
      if (line == unreadable) throw std::runtime_error("line " + std::to_string(line) + " is cut off");
      note_get();
      auto number = static_cast<std::int64_t>(line);
      return Tensors{at::full({}, number, at::kLong), at::rand({3}) + noise[0], at::full({2, 2}, number, at::kByte)};
    }
    std::size_t size, unreadable, next_line, step;
    at::Tensor noise;
  };

  std::size_t size_;
  std::size_t unreadable_;
};

/// Gives the same examples in each pass, but fewer of them where a file is there, which the first pass makes.
class Shrinking : public IterableDataset {
 public:
  std::unique_ptr<Examples> examples(const Shard& /*shard*/) override { return std::make_unique<Pass>(); }

 private:
  struct Pass : Examples {
    Pass() {
      const char* path = std::getenv("TAAS_TEST_GETS");
      if (path == nullptr) return;
      left = std::ifstream(path).good() ? 2 : 40;
      note_get();
    }
    std::optional<Tensors> next() override {
      return left-- > 0 ? std::optional(Tensors{at::full({}, left, at::kLong) * 0}) : std::nullopt;
    }
    std::int64_t left = 40;
  };
};

/// Gives other examples in each pass, whatever torch was seeded with.
class Fickle : public IterableDataset {
 public:
  std::unique_ptr<Examples> examples(const Shard& /*shard*/) override { return std::make_unique<Pass>(); }

 private:
  struct Pass : Examples {
    std::optional<Tensors> next() override {
      if (count++ == 40) return std::nullopt;
      return Tensors{at::full({}, static_cast<std::int64_t>(source()), at::kLong)};
    }
    std::random_device source;
    int count = 0;
  };
};

}  // namespace taas::test
