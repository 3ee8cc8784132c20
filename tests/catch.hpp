#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

// Catch2 is version 2 in Debian 12 and version 3 later: the tests include this and need not know.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& text) { return Catch::Matchers::Contains(text); }
#endif

namespace taas {

/// Where the variable CI is set, root can do every test case: one that cannot be done there is a failure.
inline bool every_test_can_be_done() { return std::getenv("CI") != nullptr && ::geteuid() == 0; }

/// Test cases that ended with SKIP_TEST, where Catch2 does not count them itself.
inline int skipped_test_cases = 0;

}  // namespace taas

/// Ends the test case: this machine has not the GPU that it needs. It counts as skipped and not as passed; when all are
/// skipped the program returns what CTest takes for that (main.cpp).
#ifdef SKIP  // from Catch2 3.3 on
#define SKIP_GPU_TEST(reason) SKIP((reason))
#else
#define SKIP_GPU_TEST(reason)      \
  do {                             \
    ++taas::skipped_test_cases;    \
    WARN("skipped: " << (reason)); \
    return;                        \
  } while (false)
#endif

/// The same for what CI has to be able to do: there it is a failure.
#define SKIP_TEST(reason)                               \
  do {                                                  \
    if (taas::every_test_can_be_done()) FAIL((reason)); \
    SKIP_GPU_TEST(reason);                              \
  } while (false)
