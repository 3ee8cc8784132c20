#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace taas::plan {

/// How large batches travel to ranks on other machines.
enum class Compression { kNone, kLz4, kZstd };
/// What a loop does with a batch that the dataset could not make.
enum class OnDataError { kRaise, kSkip };

/// Data delivery: batches of registered loaders are made on CPU machines.
struct DataOptions {
  std::optional<int> cpus;           ///< --cpus: CPU machines; 0: loaders are plain; absent: no delivery
  std::optional<int> cores;          ///< --data-cores: worker processes on each; absent: its usable cores
  std::optional<std::string> hosts;  ///< --data-hosts, as written: make_plan() reads it
  std::string loader;                ///< --loader: what is prepared first; commas between several
  bool split = false;                ///< --split: registered loaders are shared by all ranks
  std::int64_t units = 0;            ///< --units: samples from each loader, over all ranks; 0: all
  std::int64_t buffer_bytes = std::int64_t{1} << 30;  ///< --data-buffer, for each rank
  Compression compression = Compression::kNone;
  bool plain = false;  ///< --data-plain: authenticated, not encrypted
  OnDataError on_error = OnDataError::kRaise;
};

// clang-format off
BOOST_DESCRIBE_ENUM(Compression, kNone, kLz4, kZstd)
BOOST_DESCRIBE_ENUM(OnDataError, kRaise, kSkip)
BOOST_DESCRIBE_STRUCT(DataOptions, (), (cpus, cores, hosts, loader, split, units, buffer_bytes, compression, plain, on_error))
// clang-format on

}  // namespace taas::plan
