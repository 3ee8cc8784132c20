#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/output/outbox.hpp"
#include "node/ranks/rank_starts.hpp"
#include "plan/streams.hpp"
#include "storage/publishing/writers.hpp"

namespace taas {
class DiskThread;
class Family;
}  // namespace taas

namespace taas::node {

struct NodeRanksOptions {
  RankStartsOptions starts;
  bool all_output = false;  ///< also tell lines that the console does not show
  /// Called before ranks are spawned, in the event loop: it may end them all before they are there.
  std::function<void()> before_start;
  /// A rank has ended, by this status: what other parts of the node know of that is added before it is told.
  std::function<void(Rank, run::Evidence&)> on_end;
};

/// The ranks of the generation at hand on this node: starts them, passes on what they print, signals them, and tells of
/// their ends (RankSpawned, RankSpawnFailed, RankExited).
class NodeRanks {
 public:
  /// All of these outlive this.
  NodeRanks(boost::asio::io_context& io, Family& family, DiskThread& disk, Outbox& outbox,
            const storage::RunDirectory& folder, NodeRanksOptions options);
  NodeRanks(const NodeRanks&) = delete;
  NodeRanks& operator=(const NodeRanks&) = delete;

  /// The former generation is gone.
  void start(Generation generation, plan::RunAddresses addresses, std::vector<RankPlace> places);
  /// None is started any more; those that run are not touched.
  void cancel_start();
  /// No rank waits for an import first.
  void hurry();
  /// No generation follows.
  void release_source() { source_.reset(); }
  /// Passes on what is left of ranks that are gone.
  void flush();
  /// Of this generation only. `before` is called right before ranks are told to end.
  void signal(const run::SignalRanks& request, const std::function<void()>& before = nullptr);
  /// While held, ranks whose lines the console shows are not read from.
  void hold_output(bool hold);

  [[nodiscard]] Generation generation() const { return generation_; }
  [[nodiscard]] const std::vector<RankPlace>& places() const { return starts_.places(); }
  /// Whose own process this is.
  [[nodiscard]] std::optional<Rank> rank_of(int pid) const;
  [[nodiscard]] bool told_to_end() const { return told_to_end_by_ != 0; }
  /// May be asked from any thread. What a rank still writes as it dies may be half a file.
  [[nodiscard]] const storage::WritingProcesses& writers() const { return writers_; }

 private:
  void use(GenerationPaths made);
  void start_all();
  void take(std::size_t index, Result<Child> child);
  void adopt(std::size_t index, Child child);
  void note_end_of_writer(Rank rank, const run::ExitStatus& status);
  void ended(Rank rank, Generation of, run::ExitStatus status, run::Evidence evidence, Instant at);
  void say_failed(const RankPlace& place, const Error& error);
  std::unique_ptr<RankSource> make_source();
  RankCallbacks callbacks(Rank rank);
  void choose_streams();
  [[nodiscard]] bool is_shown(std::size_t index) const;
  [[nodiscard]] bool out_of_memory_struck() const;
  void show(std::size_t index, const ui::OutputLine& line);
  void explain_refusal(Rank rank);
  void tell_gap_of_protection();
  void remark(std::string text) { outbox_.say(run::Remark{std::move(text)}); }

  boost::asio::io_context& io_;
  Family& family_;
  DiskThread& disk_;
  Outbox& outbox_;
  const storage::RunDirectory& folder_;
  NodeRanksOptions options_;
  RankStarts starts_;

  Generation generation_{-1};
  bool start_wanted_ = false;                        // from the order on, until all of it is to end
  std::unique_ptr<RankSource> source_;               // from the first generation on
  std::vector<plan::RankOutput> outputs_;            // by place: which of its streams the console shows
  std::vector<PreparedRank> starting_;               // by place; those that run are empty
  std::optional<Error> short_of_;                    // why there are fewer of these than places
  std::vector<std::unique_ptr<RankProcess>> ranks_;  // started ones, by place
  storage::WritingProcesses writers_;
  int told_to_end_by_ = 0;                   // the signal, once all are told
  std::optional<long> out_of_memory_kills_;  // when the generation began
  bool held_ = false;
  bool refusal_explained_ = false;
};

}  // namespace taas::node
