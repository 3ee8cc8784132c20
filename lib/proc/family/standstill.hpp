#pragma once

#include <vector>

#include "proc/family/descendants.hpp"

namespace taas {

/// Holds processes still while it lives, so that what they do before a signal and what they do after it can be told
/// apart. An interpreter heeds a signal some steps after it has come: one that is just about to open a file does so
/// first. So processes are held where they wait in the kernel, as far as they do so within some milliseconds, and
/// elsewhere if they do not. One that does not stop is stuck in the kernel, and does nothing anyway. Those that
/// somebody else has stopped stay so.
class Standstill {
 public:
  explicit Standstill(const std::vector<Process>& processes);
  ~Standstill();
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

 private:
  std::vector<Process> held_;
};

}  // namespace taas
