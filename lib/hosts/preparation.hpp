#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "hosts/journal_file.hpp"
#include "hosts/local_run.hpp"
#include "proc/landlock.hpp"
#include "storage/run_directory.hpp"
#include "store/server.hpp"

namespace taas::hosts {

/// What is made ready before the first rank, each piece of which may still refuse. The folder comes last, so that a
/// refused run leaves none behind.
struct Preparation {
  LocalRunOptions options;
  std::shared_ptr<std::function<void(Rank)>> on_joined;  // set by the run, called by the store
  std::unique_ptr<store::Server> store;
  std::optional<Ruleset> read_only;
  storage::RunDirectory folder;
  JournalFile journal;
};

Result<Preparation> prepare(boost::asio::io_context& io, LocalRunOptions options);

}  // namespace taas::hosts
