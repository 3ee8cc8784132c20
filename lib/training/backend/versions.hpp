#pragma once

#include <cstdint>
#include <string>

namespace taas {

/// Versions as libtorch has them: major, minor and patch in the three highest bytes (torch/headeronly/version.h).
/// Empty: a program that was built with the one works with the other, since only the patch differs.
std::string difference_of_torch(std::uint64_t built, std::uint64_t loaded);

/// Versions as NCCL_VERSION_CODE has them: 23007 is 2.30.7. Empty: the one that is loaded has all that is called.
std::string difference_of_nccl(int built, int loaded);

/// Throws ConfigError where the program has loaded another libtorch than libtaas was built with: classes differ there,
/// and what comes of it is a crash.
void check_torch();

}  // namespace taas
