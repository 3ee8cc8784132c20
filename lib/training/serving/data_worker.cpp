#include "training/serving/data_worker.hpp"

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "data/server/server.hpp"
#include "taas/error.hpp"
#include "training/backend/environment.hpp"
#include "training/data/data_events.hpp"
#include "training/data/data_plan.hpp"
#include "training/making/data_batch.hpp"
#include "training/serving/data_preparation.hpp"

namespace taas {
namespace {

using namespace std::chrono_literals;

/// Batches are large and alike: what one gives back is the next one's, without asking the system for fresh pages.
void tune_allocator() {
  constexpr int kMost = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, kMost);
  ::mallopt(M_TRIM_THRESHOLD, kMost);
}

std::string needed(const char* name) {
  auto value = process_variable(name);
  if (value) return *value;
  throw ConfigError(std::string("TAAS_ROLE is data-worker, but ") + name +
                    " is not set: both come from taas-run, unset TAAS_ROLE for a program that runs without");
}

Fd listener_of(std::string_view text) {
  if (text == "-") return {};
  int number = -1;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool whole = error == std::errc{} && stop == text.data() + text.size() && number >= 0;
  if (!whole) throw ConfigError("TAAS_DATA_LISTEN has " + std::string(text) + " where a descriptor or - is due");
  return Fd(number);
}

data::ServerOptions server_options(const DataPlan& plan) {
  auto listen = needed("TAAS_DATA_LISTEN");
  auto comma = listen.find(',');
  if (comma == std::string::npos) throw ConfigError("TAAS_DATA_LISTEN=" + listen + " is not two descriptors");
  return {.run_id = plan.run_id,
          .key = plan.key,
          .encryption = plan.encryption,
          .tcp_listener = listener_of(std::string_view(listen).substr(0, comma)),
          .unix_listener = listener_of(std::string_view(listen).substr(comma + 1))};
}

/// This worker's place in the plan's list.
std::size_t worker_index() {
  auto text = needed("TAAS_DATA_WORKER");
  std::size_t number = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && stop == text.data() + text.size()) return number;
  throw ConfigError("TAAS_DATA_WORKER=" + text + " is not a number");
}

/// One process that makes batches.
class DataWorker {
 public:
  DataWorker(const DataPlan& plan, const std::vector<KnownLoader>& loaders) : server_(server_options(plan)) {
    for (const auto& known : loaders) makers_.emplace(known.state->maker->description(), known.state->maker);
    if (!plan.loaders.empty()) preparation_.emplace(plan, loaders, worker_index());
  }

  /// What ranks ask for goes before what they may ask for.
  void step() {
    bool prepares = preparation_ && !preparation_->is_done();
    if (auto job = server_.take(prepares ? Duration(0) : Duration(500ms))) {
      answer(*job);
    } else if (prepares) {
      preparation_->step();
    }
    if (preparation_) preparation_->tend();
    for (const auto& line : server_.take_remarks()) remark_on_data(line);
  }

 private:
  void answer(const data::Job& job) {
    if (server_.is_withdrawn(job)) return server_.give_back(job, "withdrawn");
    auto definition = server_.definition(job.digest);
    if (!definition) return server_.give_back(job, "its definition is not here");
    auto found = makers_.find(definition->bytes);
    if (found == makers_.end()) return server_.give_back(job, why_not(definition->bytes));
    try {
      send(job, *found->second, definition->bytes);
    } catch (const std::bad_alloc&) {
      server_.give_back(job, "the data worker has not enough memory for it");
    } catch (const std::exception& error) {
      server_.raise(job, {.type = "exception", .text = error.what(), .pickled = {}});
    } catch (...) {
      constexpr const char* kOther = "something other than a std::exception was thrown";
      server_.raise(job, {.type = "exception", .text = kOther, .pickled = {}});
    }
  }

  void send(const data::Job& job, BatchMaker& maker, const std::string& description) {
    auto batch = preparation_ ? preparation_->take(description, job.payload) : std::nullopt;
    if (!batch) batch = made_batch(maker.make(job.payload));
    server_.put(job, std::move(batch->description), batch->buffers, std::move(batch->keep));
  }

  [[nodiscard]] std::string why_not(const std::string& meant) const {
    auto why = "this data worker's program has not the loader of the rank's (" + meant + ")";
    for (const auto& [description, maker] : makers_) why += ", it has " + description;
    return why;
  }

  data::Server server_;
  std::map<std::string, std::shared_ptr<BatchMaker>> makers_;  // by description
  std::optional<DataPreparation> preparation_;
};

}  // namespace

void serve_jobs(const std::vector<KnownLoader>& loaders) {
  ::signal(SIGINT, SIG_IGN);  // the launcher decides when this ends
  tune_allocator();
  const pid_t parent = ::getppid();
  DataWorker worker(read_data_plan(needed("TAAS_DATA_PLAN")), loaders);
  while (::getppid() == parent) worker.step();
}

}  // namespace taas
