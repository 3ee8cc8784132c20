#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/folders/held_folder.hpp"
#include "storage/publishing/offers.hpp"
#include "storage/publishing/writers.hpp"

namespace taas::storage {

/// A file that stays staged since nobody knows whether it is whole.
struct Doubtful {
  std::string name;
  bool has_earlier = false;  ///< an earlier version of it is published
  friend bool operator==(const Doubtful&, const Doubtful&) = default;
};

struct PublisherOptions {
  HeldFolder place = {};             ///< the run's folder
  std::string staging = ".staging";  ///< in there; TAAS_OUTPUT_DIR
  HeldFolder files = {};             ///< where files appear under their final name
  /// What is known of those who write. Asked on the publisher's thread, and outlives the publisher.
  const WritingProcesses* writers = nullptr;
  /// Where it is set, closed files count only when confirm() has answered this. Called in the event loop, which knows
  /// more than `writers` says, once it has heard what ranks have printed, and what others know.
  std::function<void(std::uint64_t number)> ask = {};
  /// What is staged by now was left by another publisher of the same run: what that one has not put on disk is
  /// doubtful.
  bool inherits = false;
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

/// Who else writes to the staging folder.
struct Sharing {
  bool others = false;  ///< processes of this kernel that `writers` does not hold
  bool alone = true;    ///< no process of another kernel
};

/// Brings what ranks write into the staging folder to its final name, whole or not at all. A file is published when it
/// was closed on purpose (see Offers) or renamed into place, again after each time it was rewritten, and stays staged
/// for the program to read back. What is doubtful, and temporary names (hidden, *.tmp, *.part, *.tmp.*), wait for
/// settle(). A staged file that is renamed or removed leaves its published twin alone. The staging folder is held open:
/// a link in its place is not followed, and a folder that the program has made anew is taken. Disks may take their
/// time: all that looks at files is done by a thread that waits for events of its own, and the copying by another one
/// that starts with the first file. All callbacks come in the event loop. To be destroyed before the loop; that waits
/// for the copy under way.
class Publisher {
 public:
  /// Where folders cannot be watched, `on_error` is told and everything is published by settle() only.
  static std::unique_ptr<Publisher> start(boost::asio::io_context& io, PublisherOptions options);
  ~Publisher();

  /// What is published from now on appears in this folder.
  void publish_to(HeldFolder files);

  void share(Sharing sharing);
  /// Whether the writers went on well when PublisherOptions::ask was called with this number.
  void confirm(std::uint64_t number, bool well);

  /// All ranks are about to be told to end, or killed: to be called before the signal, while they stand still or as
  /// shortly before as may be.
  void stop(Stop stop);
  /// Nothing was ever written, as far as is known: a stop need not be told.
  [[nodiscard]] bool has_seen_files() const;

  /// The run ended well and no rank is left: publishes everything that is staged and not yet published, also what comes
  /// meanwhile, and then removes staged files whose very content is published. Files that nobody writes any more are
  /// moved, which needs no room. What cannot be published stays, and none is removed then. `on_done` gets an empty text
  /// once all is on disk, or what went wrong; and what a stop has cut off.
  void settle(std::function<void(std::string error, std::vector<Doubtful> doubtful)> on_done);

  /// The ranks of a generation ended badly and are gone. `on_done` gets the files that stay staged, until they are
  /// written again, since nobody knows whether they are whole.
  void abandon(std::function<void(std::vector<Doubtful> doubtful)> on_done);

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
