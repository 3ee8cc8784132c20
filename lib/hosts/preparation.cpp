#include "hosts/preparation.hpp"

#include <unistd.h>

#include <csignal>

#include "proc/descendants.hpp"

namespace taas::hosts {
namespace {

constexpr auto kKillPatience = std::chrono::seconds(5);  // for processes that are stuck in the kernel

}  // namespace

void end_with_keeper(boost::asio::io_context& io, Lifeline& lifeline) {
  lifeline.on_keeper_death(io, [] {
    kill_and_reap_descendants(kKillPatience);
    ::_exit(128 + SIGKILL);
  });
}

Result<storage::RunDirectory> create_run_folder(const plan::LaunchPlan& plan) {
  storage::RunDirectoryOptions options;
  options.output = plan.options.output.directory;
  options.run_id = plan.run_id;
  options.log_dir = plan.options.output.log_dir;
  return storage::create_run_directory(std::move(options));
}

}  // namespace taas::hosts
