#include "run/agent/loader_preparation.hpp"

namespace taas::run {

bool LoaderPreparation::complete() const {
  int done = 0;
  std::int64_t bytes = 0;
  for (const auto& [worker, prepared] : of_) {
    done += prepared.done ? 1 : 0;
    bytes += prepared.bytes;
  }
  return done >= workers_ || (bytes > 0 && bytes >= buffer_bytes_);
}

}  // namespace taas::run
