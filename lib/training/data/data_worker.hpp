#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/data/data_task.hpp"

namespace taas {

/// A batch as it is sent: `keep` owns the buffers. They begin at multiples of 64, one behind the other.
struct MadeBatch {
  std::string description;
  std::vector<std::span<const std::byte>> buffers;
  std::shared_ptr<void> keep;
};

/// What a data worker knows of a loader.
struct ServedLoader {
  std::size_t size = 0;                            ///< of the dataset
  std::function<MadeBatch(const DataTask&)> make;  ///< may throw
};

/// By which ranks and data workers know that they mean the same.
std::string describe_loader(std::string_view name, std::size_t size);

/// Answers what ranks ask for until the process that started this one is gone. Throws ConfigError for an environment
/// that is not a data worker's.
void serve_jobs(const std::map<std::string, ServedLoader>& loaders);

}  // namespace taas
