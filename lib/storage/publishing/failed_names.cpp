#include "storage/publishing/failed_names.hpp"

#include <fmt/format.h>

#include <utility>

namespace taas::storage {

bool FailedNames::add(const std::string& name, const Error& error, const FileState& seen) {
  now_.insert_or_assign(name, Failure{error.message, seen});
  auto former = before_.find(name);
  return former == before_.end() || former->second.message != error.message;
}

void FailedNames::begin_round() { before_ = std::exchange(now_, {}); }

bool FailedNames::stays(const std::string& name, const FileState& seen) {
  auto former = before_.find(name);
  if (former == before_.end() || former->second.seen != seen) return false;
  now_.insert(*former);
  return true;
}

std::string FailedNames::message() const {
  if (now_.empty()) return "";
  const auto& first = now_.begin()->second.message;
  return now_.size() == 1 ? first : fmt::format("{} (and {} more)", first, now_.size() - 1);
}

}  // namespace taas::storage
