#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "catch.hpp"
#include "storage/publishing/publisher.hpp"
#include "storage/temporary_folder.hpp"

// What tests of the Publisher write, and what it publishes.
namespace taas::storage::publisher_output {

namespace fs = std::filesystem;

/// A publisher over real folders.
struct Output {
  TemporaryFolder folder;
  std::string staging = folder / "run/.staging";
  std::string files = folder / "run/output";
  boost::asio::io_context io;
  WritingProcesses writers;
  std::vector<std::string> errors;
  std::vector<Doubtful> doubtful;  // at the end
  std::unique_ptr<Publisher> publisher;

  explicit Output(std::string other_files = {}) {
    if (!other_files.empty()) files = std::move(other_files);
    fs::create_directories(staging);
    fs::create_directories(files);
    publisher = Publisher::start(io, options());
  }

  [[nodiscard]] HeldFolder place() const { return HeldFolder::open(folder / "run").value(); }
  PublisherOptions options() {
    PublisherOptions options;
    options.place = place();
    options.files = HeldFolder::open(files).value();
    options.writers = &writers;
    options.on_error = [this](const Error& error) { errors.push_back(error.message); };
    return options;
  }
  /// With these options from now on.
  void restart(PublisherOptions with) {
    publisher.reset();
    publisher = Publisher::start(io, std::move(with));
  }
  /// As if a rank had ended so.
  void ended(WriterEnd end) { writers.ended(1, end); }

  void write(const std::string& name, const std::string& text) { write_text(staging + "/" + name, text); }
  [[nodiscard]] std::string published(const std::string& name) const { return read_text(files + "/" + name); }
  [[nodiscard]] bool has(const std::string& name) const { return fs::exists(fs::symlink_status(files + "/" + name)); }

  template <class Condition>
  bool runs_until(Condition condition) {
    // What the publisher's own thread has done is not always told to the loop.
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      io.restart();
      io.run_one_for(std::chrono::milliseconds(1));
    }
    return condition();
  }
  std::string settle() {
    std::optional<std::string> result;
    publisher->settle([&](std::string error, std::vector<Doubtful> left) {
      result = std::move(error);
      doubtful = std::move(left);
    });
    REQUIRE(runs_until([&] { return result.has_value(); }));
    return *result;
  }
  std::vector<Doubtful> abandon() {
    std::optional<std::vector<Doubtful>> result;
    publisher->abandon([&](std::vector<Doubtful> left) { result = std::move(left); });
    REQUIRE(runs_until([&] { return result.has_value(); }));
    return *result;
  }
};

}  // namespace taas::storage::publisher_output
