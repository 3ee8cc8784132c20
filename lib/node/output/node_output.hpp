#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "node/output/delivery.hpp"
#include "proc/family/descendants.hpp"
#include "run/messages/messages.hpp"
#include "storage/publishing/publisher.hpp"
#include "storage/run_directory.hpp"

namespace taas::node {

struct NodeOutputOptions {
  std::string hostname;
  const storage::WritingProcesses* writers = nullptr;    ///< as PublisherOptions::writers
  std::function<void(std::uint64_t number)> ask_others;  ///< run::AskWriters
  std::function<void(std::string frame)> send_file;
  std::function<void(std::string text)> remark;
};

/// What becomes of the files that ranks of this node write: they are published here where the coordinator says so, and
/// delivered to where it sees another folder.
class NodeOutput {
 public:
  /// `folder` must outlive this.
  NodeOutput(boost::asio::io_context& io, const storage::RunDirectory& folder, NodeOutputOptions options)
      : io_(io), folder_(folder), options_(std::move(options)) {}

  void take(const run::OutputDuty& duty, Generation generation);
  /// All ranks are about to be told to end, or killed. These processes write; they had better stand still meanwhile.
  void stopping(bool by_kill, const std::vector<Process>& processes);
  [[nodiscard]] bool has_seen_files() const { return publisher_ && publisher_->has_seen_files(); }
  void hear(const run::FileProgress& progress);
  void hear(const run::FileStored& stored);
  void hear(const run::WritersAnswer& answer);
  /// Nothing of what is under way will arrive, and no writer lives.
  void begin_anew();
  /// Doubtful files stay unpublished, and are named; the next generation may write them again.
  void abandon();
  /// All that is to be published is, or is named in the error, and was delivered.
  void settle(bool publish, std::function<void(const std::string& error)> on_done);
  [[nodiscard]] int published() const { return static_cast<int>(publisher_ ? publisher_->published() : 0); }

 private:
  void publish_to(HeldFolder files, Generation generation);
  void ask(std::uint64_t number);
  void name_doubtful(const std::vector<storage::Doubtful>& doubtful);
  void deliver();
  void settle_publisher(bool publish, std::function<void(std::string error)> on_done);

  boost::asio::io_context& io_;
  const storage::RunDirectory& folder_;
  NodeOutputOptions options_;
  bool others_write_ = false;                      // as OutputDuty::asks
  std::unique_ptr<storage::Publisher> publisher_;  // where this node publishes for all that see its folder
  std::unique_ptr<Delivery> delivery_;             // where the coordinator sees another folder
};

}  // namespace taas::node
