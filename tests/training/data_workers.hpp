#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.hpp"

namespace taas::test {

/// What the plan says besides who the workers are.
struct DataWorkersOptions {
  std::string on_error = "raise";
  int units = 0;
  std::string loader = {};  ///< --loader
  int world_size = 1;
};

/// Data workers of this machine, and the plan that tells this process of them, as long as it lives.
class DataWorkers {
 public:
  explicit DataWorkers(int count, const DataWorkersOptions& options = {});
  ~DataWorkers();
  DataWorkers(const DataWorkers&) = delete;
  DataWorkers& operator=(const DataWorkers&) = delete;

  void kill(std::size_t worker);
  /// At the same address.
  void start(std::size_t worker);

 private:
  struct Worker {
    Fd listener;
    std::string path;
    pid_t pid = -1;
  };
  void write_plan(const DataWorkersOptions& options) const;

  std::string folder_;
  std::vector<Worker> workers_;
};

}  // namespace taas::test
