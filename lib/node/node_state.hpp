#pragma once

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/disk_thread.hpp"
#include "net/held_ports.hpp"
#include "node/data/data_delivery.hpp"
#include "node/node.hpp"
#include "node/output/node_output.hpp"
#include "node/output/outbox.hpp"
#include "node/process/rank_process.hpp"
#include "node/process/rank_source.hpp"
#include "node/stop_wish.hpp"
#include "node/timers/node_timers.hpp"
#include "plan/launch_plan.hpp"
#include "proc/family/family.hpp"
#include "proc/spawn/landlock.hpp"
#include "proc/spawn/open_files.hpp"
#include "storage/liveness.hpp"
#include "store/server.hpp"

namespace taas::node {

/// Of one rank's files; empty where its folder cannot be made.
struct RankPaths {
  std::string out;
  std::string err;
  std::string error;
};

/// What one generation of a node writes to.
struct GenerationPaths {
  std::string flight_records;
  std::vector<RankPaths> ranks;
};

/// The Node's inside: the ranks of the generation at hand, and the parts around them. Preparation and orders to what
/// runs are in node.cpp, starting ranks in node_ranks.cpp.
struct Node::State {
  State(boost::asio::io_context& loop, NodeOptions given, Say say)
      : io(loop),
        options(std::move(given)),
        outbox(loop, {options.in_process, std::move(say), [this](bool crowded) { hold_output(crowded); }}),
        disk(loop),
        family(loop),
        open_files_limit(raise_open_files_limit()) {}

  Result<> open_store();
  void tell_limit_of_store(const Error& why);
  Result<> open_data();
  Result<> open_timers();
  Result<> hold_ports();

  template <class Message>
  void perform(const Message&) {}
  void perform(const run::StartRanks& start);
  void perform(const run::SignalRanks& request) { stop_wish.pass(request); }
  void perform(const run::KillGeneration&) { sweep(SIGKILL); }
  void perform(const run::SweepGeneration& request) { sweep(request.signal); }
  void perform(const run::OutputShown&) { outbox.shown(); }
  void perform(const run::RequestStop& request);
  void perform(const run::Settle& request);
  void perform(const run::Abandon&) { output->abandon(); }
  void perform(const run::DataWorkers& list);
  void perform(const run::FileProgress& progress) { output->hear(progress); }
  void perform(const run::FileStored& stored) { output->hear(stored); }

  void use(GenerationPaths made);
  void start_all();
  void take(std::size_t index, Result<Child> child);
  void adopt(const RankPlace& place, PreparedRank prepared, Child child);
  void say_failed(const RankPlace& place, const Error& error);
  std::unique_ptr<RankSource> make_source();
  [[nodiscard]] CommonEnvironment common() const;
  [[nodiscard]] std::string served_address() const;
  RankStart describe(const RankPlace& place, const RankPaths& files);
  RankCallbacks callbacks(Rank rank);
  [[nodiscard]] std::vector<std::string> environment_of(const RankPlace& place, const std::string& error) const;
  void choose_streams(const std::vector<RankPlace>& places);
  void open_output();
  void say_settled(const std::string& error);
  void signal(const run::SignalRanks& request);
  void sweep(int signal);
  void hold_output(bool hold);
  void show(std::size_t index, const ui::OutputLine& line);
  void explain_refusal(Rank rank);
  void tell_gap_of_protection();
  /// Whose own process this is.
  [[nodiscard]] std::optional<Rank> rank_of(int pid) const;
  [[nodiscard]] bool out_of_memory_struck() const;
  [[nodiscard]] bool is_shown(std::size_t index) const;
  void remark(std::string text) { outbox.say(run::Remark{std::move(text)}); }
  [[nodiscard]] const storage::RunDirectory& folder() const { return *opened; }
  /// A wish to stop one generation, as when a node leaves, is none to stop the next.
  [[nodiscard]] std::string stop_file() const {
    return fmt::format("{}/stop-requested-{}", folder().path(), generation.value);
  }

  boost::asio::io_context& io;
  NodeOptions options;
  std::optional<storage::RunDirectory> opened;  // always, once prepared
  Outbox outbox;
  DiskThread disk;
  Family family;
  std::optional<std::uint64_t> open_files_limit;  // the user's, given back to ranks
  std::optional<Ruleset> read_only;
  std::unique_ptr<store::Server> store;
  std::uint16_t store_port = 0;
  net::HeldPorts rank_ports;
  std::string folder_mark;
  /// What a rank still writes as it dies may be half a file: then nothing is published until the run has ended well.
  storage::WritingProcesses writers;
  std::optional<NodeOutput> output;    // always, once prepared
  std::unique_ptr<DataDelivery> data;  // with --cpus
  std::unique_ptr<NodeTimers> timers;  // with TORCHELASTIC_ENABLE_FILE_TIMER
  StopWish stop_wish{io, disk, [this](const run::SignalRanks& request) { signal(request); },
                     [this](std::string text) { remark(std::move(text)); }};

  Generation generation{-1};
  plan::RunAddresses addresses;
  std::unique_ptr<RankSource> source;               // from the first generation on
  std::vector<RankPlace> places;                    // of this node's ranks, in order
  bool start_wanted = false;                        // from the order on, until all of it is to end
  std::vector<RankPaths> paths;                     // of the ranks' files, in the same order
  std::vector<plan::RankOutput> outputs;            // which of their streams the console shows
  std::vector<PreparedRank> starting;               // in the same order; those that run are empty
  std::optional<Error> short_of;                    // why there are fewer of these than places
  std::vector<std::unique_ptr<RankProcess>> ranks;  // started ones, in the same order
  std::optional<long> out_of_memory_kills;          // when the generation began
  bool held = false;
  bool refusal_explained = false;
  bool limit_told = false;  // of the store
};

}  // namespace taas::node
