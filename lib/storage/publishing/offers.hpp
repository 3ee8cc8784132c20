#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "storage/publishing/writers.hpp"

namespace taas::storage {

/// All ranks are told to end, or are killed: what they have open at this moment is perhaps closed because of it.
struct Stop {
  bool kills = false;                    ///< by SIGKILL
  std::map<std::string, int> open = {};  ///< the names that they write, and how many closes these are good for
  int killed_before = 0;                 ///< of the writers; filled in by Publishing
};

/// Which files that were closed after writing are taken for whole. A file is closed when its writer is done, and just
/// as well when an exception or a signal takes the writer out of the middle of it; the two differ in what follows. So:
///
///   - while all is well, a close counts once the writers have gone on for a while: for kHold, and less for a file that
///     is written again and again;
///   - what was open when ranks were told to end is doubtful, as what was closed in the last moment before; what they
///     begin after that counts when they close it, since they do so on purpose;
///   - what is closed after SIGKILL, or while a process that was killed ends, is doubtful.
///
/// What is doubtful stays staged, and is published if the run ends well all the same. Time comes from the caller, and
/// so do events, in the order in which they happened.
class Offers {
 public:
  static constexpr Duration kHold = std::chrono::milliseconds(400);
  static constexpr Duration kLeastHold = std::chrono::milliseconds(200);
  /// What is closed so soon after the signal may have been unwound, even by a program that then ends with 0.
  static constexpr Duration kUnwinds = std::chrono::milliseconds(500);

  /// A generation begins: nothing is left to be judged.
  void begin();
  void closed(const std::string& name, Instant now);
  /// It is there, and nobody writes it: it was closed before anybody looked.
  void found(const std::string& name, Instant now);
  /// Renamed or linked into place: on purpose, and so not to be judged.
  void placed(const std::string& name);
  void stop(const Stop& stop, Instant now);

  /// Those that count now, once.
  std::vector<std::string> take(WritersState writers, Instant now);
  /// When to ask again even if nothing has happened.
  [[nodiscard]] std::optional<Instant> ask_again(WritersState writers, Instant now) const;
  /// Whether even a run that ended well leaves doubt about it.
  [[nodiscard]] bool was_cut_off(const std::string& name) const;
  [[nodiscard]] bool stopped() const { return stopped_.has_value(); }

 private:
  struct Offer {
    Instant closed;
    bool after_stop = false;
    bool found = false;  // no close has been told
  };
  [[nodiscard]] Duration hold_of(const std::string& name) const;

  std::map<std::string, Offer> offers_;      // closed, and neither believed nor doubtful
  std::map<std::string, int> rewritten_;     // how often a name was closed again before it counted
  std::map<std::string, int> open_at_stop_;  // closes that are still to come of what was open then
  std::map<std::string, Instant> cut_off_;   // what was open at the stop: when it was closed
  std::optional<Instant> stopped_;
  bool killed_ = false;
};

}  // namespace taas::storage
