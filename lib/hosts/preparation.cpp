#include "hosts/preparation.hpp"

namespace taas::hosts {
namespace {

Result<std::unique_ptr<store::Server>> open_store(boost::asio::io_context& io, const plan::LaunchPlan& plan,
                                                  std::shared_ptr<std::function<void(Rank)>> on_joined) {
  store::ServerOptions options;
  options.port = static_cast<std::uint16_t>(plan.options.rendezvous.master_port.value_or(0));
  store::Observer observer;
  observer.on_joined = [on_joined](Rank rank) { (*on_joined)(rank); };
  return store::Server::listen(io, options, std::move(observer));
}

Result<std::optional<Ruleset>> protect(const std::vector<std::string>& directories) {
  if (directories.empty()) return std::nullopt;
  auto rules = make_read_only(directories);
  if (!rules) return rules.error();
  return std::optional<Ruleset>(std::move(*rules));
}

Result<storage::RunDirectory> make_folder(const plan::LaunchPlan& plan) {
  storage::RunDirectoryOptions options;
  options.output = plan.options.output.directory;
  options.run_id = plan.run_id;
  options.log_dir = plan.options.output.log_dir;
  for (const auto& rank : plan.ranks) options.ranks.push_back({rank.node, rank.local_rank});
  return storage::create_run_directory(std::move(options));
}

}  // namespace

Result<Preparation> prepare(boost::asio::io_context& io, LocalRunOptions options) {
  auto on_joined = std::make_shared<std::function<void(Rank)>>();
  auto store = open_store(io, options.plan, on_joined);
  if (!store) return store.error();
  auto read_only = protect(options.plan.options.output.protected_directories);
  if (!read_only) return read_only.error();
  auto folder = make_folder(options.plan);
  if (!folder) return folder.error();
  auto journal = JournalFile::open(folder->journal_path(), steady_now());
  if (!journal) return journal.error();
  return Preparation{std::move(options),    std::move(on_joined), std::move(*store),
                     std::move(*read_only), std::move(*folder),   std::move(*journal)};
}

}  // namespace taas::hosts
