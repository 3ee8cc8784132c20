#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace taas::storage {

struct PublisherOptions {
  std::string staging = {};  ///< TAAS_OUTPUT_DIR
  std::string files = {};    ///< where files appear under their final name
  /// Whether no rank is on its way out: a file that was closed while this is true is whole. See process_is_alive().
  /// Asked on the publisher's thread.
  std::function<bool()> writers_alive = {};
  /// Told of each failure as it happens; what failed is tried again by settle().
  std::function<void(const Error&)> on_error = {};
  /// Called on the publisher's thread, before each look for what is left at the end: a test's chance to write more.
  std::function<void()> before_look = {};
  /// When to begin to look; what was written before is found then. The kernel takes 10 ms to end a watch, which a run
  /// that is over sooner than this need not wait for.
  std::chrono::milliseconds watch_after{0};
  /// Told of each file that is on disk under its name, again each time it was rewritten.
  std::function<void(const std::string& name)> on_published = {};
};

/// Brings what ranks write into the staging folder to its final name, whole or not at all. A file is published when a
/// living process has closed it, again after each time it was rewritten, and stays staged for the program to read back.
/// What a dying process closed, and temporary names (hidden, *.tmp, *.part, *.tmp.*), wait for settle(). A staged file
/// that is renamed or removed leaves its published twin alone. Disks may take their time: all that looks at files is
/// done by a thread that waits for events of its own, and the copying by another one that starts with the first file.
/// But for writers_alive all callbacks come in the event loop. To be destroyed before the loop; that waits for the copy
/// under way.
class Publisher {
 public:
  /// Where folders cannot be watched, `on_error` is told and everything is published by settle() only.
  static std::unique_ptr<Publisher> start(boost::asio::io_context& io, PublisherOptions options);
  ~Publisher();

  /// What is published from now on appears in this folder.
  void publish_to(std::string files);

  /// The run ended well and no rank is left: publishes everything that is staged and not yet published, also what comes
  /// meanwhile, and then removes staged files whose very content is published. Files that nobody writes any more are
  /// moved, which needs no room. What cannot be published stays, and none is removed then. `on_done` gets an empty text
  /// once all is on disk, or what went wrong.
  void settle(std::function<void(std::string error)> on_done);

  /// The ranks of a generation ended badly and are gone. `on_done` gets the names of files that were never published
  /// since nobody knows whether they are whole; these stay unpublished until they are written again.
  void abandon(std::function<void(std::vector<std::string> unpublished)> on_done);

  /// How many names are published, as far as the event loop has been told.
  [[nodiscard]] std::size_t published() const;

 private:
  struct Thread;
  explicit Publisher(std::unique_ptr<Thread> thread);
  std::unique_ptr<Thread> thread_;
};

/// Whether a program means this name, relative to the staging folder, to be replaced by another soon.
bool is_temporary_name(const std::string& name);

}  // namespace taas::storage
