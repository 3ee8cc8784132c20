#include "proc/spawn/child_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.hpp"

namespace taas {
namespace {

constexpr int kReserved = 8;
constexpr int kFirst = 16;  // a child moves descriptors that it inherits to numbers below this one

/// Numbers that are taken by /dev/null until somebody needs them. For the one thread that starts processes.
class Reserve {
 public:
  Reserve() {
    null_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null_) return;
    for (int i = 0; i < kReserved; ++i) {
      Fd one(::fcntl(null_.get(), F_DUPFD_CLOEXEC, kFirst));
      if (one) free_.push_back(one.release());
    }
    std::sort(free_.rbegin(), free_.rend());
  }

  /// A number of at least `least` that now is a duplicate of the descriptor, or -1.
  int take(int descriptor, int least) {
    if (free_.empty() || free_.back() < least) return -1;
    if (::dup3(descriptor, free_.back(), O_CLOEXEC) < 0) return -1;
    int number = free_.back();
    free_.pop_back();
    return number;
  }

  void give_back(int number) {
    if (::dup3(null_.get(), number, O_CLOEXEC) < 0) return;
    free_.push_back(number);
    std::sort(free_.rbegin(), free_.rend());
  }

 private:
  Fd null_;
  std::vector<int> free_;  // the smallest last
};

Reserve& reserve() {
  static auto* kept = new Reserve;  // for as long as the process lives
  return *kept;
}

}  // namespace

void reserve_child_descriptors() { reserve(); }

ChildDescriptors::~ChildDescriptors() {
  for (int number : reserved_) reserve().give_back(number);
  for (int number : others_) ::close(number);
}

Result<int> ChildDescriptors::add(int descriptor) {
  int number = reserve().take(descriptor, least_);
  if (number >= 0) {
    reserved_.push_back(number);
  } else {
    number = ::fcntl(descriptor, F_DUPFD_CLOEXEC, least_);
    if (number < 0) return system_error("cannot duplicate a descriptor", errno);
    others_.push_back(number);
  }
  keep(number);
  return number;
}

void ChildDescriptors::keep(int descriptor) { limit_ = std::max(limit_, descriptor + 1); }

}  // namespace taas
