#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "storage/publishing/file_state.hpp"

namespace taas::storage {

/// The staged names that could not be published: why, and with which content. Publishing goes by rounds, and a name
/// that failed in the round before with the content that it still has is not tried again.
class FailedNames {
 public:
  /// Returns whether this differs from the round before, and so is worth a message.
  bool add(const std::string& name, const Error& error, const FileState& seen = {});
  void remove(const std::string& name) { now_.erase(name); }
  void clear() { now_.clear(); }

  void begin_round();
  /// Takes the failure over from the round before; false when there was none, or the content is another one now.
  bool stays(const std::string& name, const FileState& seen);

  [[nodiscard]] bool empty() const { return now_.empty(); }
  /// The first failure, and how many more there are; empty when there is none.
  [[nodiscard]] std::string message() const;

 private:
  struct Failure {
    std::string message;
    FileState seen;
  };
  std::map<std::string, Failure> now_;     // by name
  std::map<std::string, Failure> before_;  // those of the round before
};

}  // namespace taas::storage
