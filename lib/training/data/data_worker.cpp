#include "training/data/data_worker.hpp"

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <new>

#include "data/server/server.hpp"
#include "taas/error.hpp"
#include "training/backend/environment.hpp"
#include "training/data/data_events.hpp"
#include "training/data/data_plan.hpp"

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

data::ServerOptions server_options() {
  auto plan = read_data_plan(needed("TAAS_DATA_PLAN"));
  auto listen = needed("TAAS_DATA_LISTEN");
  auto comma = listen.find(',');
  if (comma == std::string::npos) throw ConfigError("TAAS_DATA_LISTEN=" + listen + " is not two descriptors");
  return {.run_id = plan.run_id,
          .key = plan.key,
          .encryption = plan.encryption,
          .tcp_listener = listener_of(std::string_view(listen).substr(0, comma)),
          .unix_listener = listener_of(std::string_view(listen).substr(comma + 1))};
}

/// The loader that the job is for; nothing, and why, when this program has none like it.
const ServedLoader* loader_for(const std::map<std::string, ServedLoader>& loaders, const std::string& meant,
                               std::string& why) {
  for (const auto& [name, loader] : loaders) {
    if (describe_loader(name, loader.size) == meant) return &loader;
  }
  why = "this data worker's program has not the loader of the rank's (" + meant + ")";
  for (const auto& [name, loader] : loaders) why += ", it has " + describe_loader(name, loader.size);
  return nullptr;
}

void answer(data::Server& server, const data::Job& job, const std::map<std::string, ServedLoader>& loaders) {
  if (server.is_withdrawn(job)) return server.give_back(job, "withdrawn");
  std::string why = "its definition is not here";
  auto definition = server.definition(job.digest);
  const auto* loader = definition ? loader_for(loaders, definition->bytes, why) : nullptr;
  auto task = DataTask::from_bytes(job.payload);
  if (loader == nullptr || !task) return server.give_back(job, task ? why : "the task is of another release of taas");
  try {
    auto made = loader->make(*task);
    server.put(job, std::move(made.description), made.buffers, std::move(made.keep));
  } catch (const std::bad_alloc&) {
    server.give_back(job, "the data worker has not enough memory for it");
  } catch (const std::exception& error) {
    server.raise(job, {.type = "exception", .text = error.what(), .pickled = {}});
  } catch (...) {
    server.raise(job, {.type = "exception", .text = "something other than a std::exception was thrown", .pickled = {}});
  }
}

}  // namespace

std::string describe_loader(std::string_view name, std::size_t size) {
  return "'" + std::string(name) + "' over " + std::to_string(size) + " examples";
}

void serve_jobs(const std::map<std::string, ServedLoader>& loaders) {
  ::signal(SIGINT, SIG_IGN);  // the launcher decides when this ends
  tune_allocator();
  const pid_t parent = ::getppid();
  data::Server server(server_options());
  while (::getppid() == parent) {
    if (auto job = server.take(500ms)) answer(server, *job, loaders);
    for (const auto& line : server.take_remarks()) remark_on_data(line);
  }
}

}  // namespace taas
