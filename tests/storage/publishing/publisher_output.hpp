#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
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

/// A publisher over real folders. `alive` is what it is told of the writers.
struct Output {
  TemporaryFolder folder;
  std::string staging = folder / "run/.staging";
  std::string files = folder / "run/output";
  boost::asio::io_context io;
  std::mutex mutex;  // the publisher asks on a thread of its own
  std::function<bool()> alive = [] { return true; };
  std::vector<std::string> errors;
  std::unique_ptr<Publisher> publisher;

  explicit Output(std::string other_files = {}) {
    if (!other_files.empty()) files = std::move(other_files);
    fs::create_directories(staging);
    fs::create_directories(files);
    PublisherOptions options;
    options.staging = staging;
    options.files = files;
    options.writers_alive = [this] {
      std::lock_guard lock(mutex);
      return alive();
    };
    options.on_error = [this](const Error& error) { errors.push_back(error.message); };
    publisher = Publisher::start(io, std::move(options));
  }

  void ask_about_writers(std::function<bool()> ask) {
    std::lock_guard lock(mutex);
    alive = std::move(ask);
  }

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
    publisher->settle([&](std::string error) { result = std::move(error); });
    REQUIRE(runs_until([&] { return result.has_value(); }));
    return *result;
  }
  std::vector<std::string> abandon() {
    std::optional<std::vector<std::string>> result;
    publisher->abandon([&](std::vector<std::string> names) { result = std::move(names); });
    REQUIRE(runs_until([&] { return result.has_value(); }));
    return *result;
  }
};

}  // namespace taas::storage::publisher_output
