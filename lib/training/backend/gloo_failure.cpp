#include "training/backend/gloo_failure.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <mutex>
#include <regex>
#include <string_view>
#include <typeinfo>

#include "training/backend/c10_error.hpp"

namespace taas {
namespace {

// Set once.
std::terminate_handler other_end = nullptr;
std::string (*what_begun_last)() = nullptr;

/// Empty for an exception that is not gloo's.
std::string text_of_gloo() {
  try {
    if (const auto error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    if (std::string_view(typeid(error).name()).starts_with("N4gloo")) return one_line(error);
  } catch (...) {  // of no kind that has a text
  }
  return "";
}

[[noreturn]] void explained_end() {
  const auto error = text_of_gloo();
  if (!error.empty()) std::cerr << end_by_gloo(what_begun_last(), error) + '\n' << std::flush;
  if (error.empty() || other_end != &__gnu_cxx::__verbose_terminate_handler) other_end();
  std::abort();
}

}  // namespace

void explain_end_by_gloo(std::string (*begun_last)()) {
  static std::once_flag once;
  std::call_once(once, [begun_last] {
    what_begun_last = begun_last;
    other_end = std::set_terminate(explained_end);
  });
}

std::string end_by_gloo(const std::string& operation, const std::string& error) {
  std::smatch sizes;
  const bool has_sizes = std::regex_search(error, sizes, std::regex("([0-9]+) vs ([0-9]+)"));
  const auto came = has_sizes ? sizes[1].str() + " bytes came where " + sizes[2].str() + " were expected"
                              : std::string("gloo has ended this process");
  return "taas: error: " + (operation.empty() ? "a collective" : operation) + ": " + came +
         ": another rank is in another collective, or in this one with another size; to see which, set "
         "TORCH_DISTRIBUTED_DEBUG=DETAIL (InitOptions::check_collectives)";
}

}  // namespace taas
