#pragma once

#include <chrono>
#include <string>

#include "base/error.hpp"
#include "node/bootstrap.hpp"

namespace taas::cli {

/// A private file in the output folder, which all nodes see: by it agents that SLURM starts learn where the coordinator
/// listens, and the secret.
class MeetingFile {
 public:
  /// `coordinator` is what errors call who writes it: "the first node of the step".
  MeetingFile(std::string path, std::string coordinator)
      : path_(std::move(path)), coordinator_(std::move(coordinator)) {}

  /// The coordinator: writes the file.
  Result<> announce(const node::Bootstrap& bootstrap) const;
  /// In place of that: says why there will be no coordinator, so that nobody waits for it. The file stays.
  void refuse(const std::string& why) const;
  /// The coordinator: removes it.
  void conclude() const;
  /// The others: waits for the file. Shared file systems tell nobody of a new file, so it is looked for, every 20 ms at
  /// first and every 250 ms later.
  [[nodiscard]] Result<node::Bootstrap> await(std::chrono::milliseconds patience) const;

  /// What it says; empty: nothing, or it is not the user's own.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] static bool is_refusal(const std::string& text);

 private:
  [[nodiscard]] Result<> write(const std::string& text) const;
  [[nodiscard]] Result<node::Bootstrap> read(const std::string& text) const;

  std::string path_;
  std::string coordinator_;
};

}  // namespace taas::cli
