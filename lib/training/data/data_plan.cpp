#include "training/data/data_plan.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>

#include "base/files.hpp"
#include "base/json/json.hpp"
#include "net/secret.hpp"
#include "taas/error.hpp"

namespace taas {
namespace {

namespace json = boost::json;

/// Which of its files it is now; 0: there is none, as at the end of a run.
std::int64_t mark_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return 0;
  return static_cast<std::int64_t>(found.st_ino) ^ (found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec);
}

data::Compression compression_of(std::string_view name) {
  if (name == "lz4") return data::Compression::kLz4;
  return name == "zstd" ? data::Compression::kZstd : data::Compression::kNone;
}

data::WorkerAddress worker_of(const json::object& worker) {
  return {.name = json::value_to<std::string>(worker.at("name")),
          .address = json::value_to<std::string>(worker.at("address")),
          .port = worker.at("port").to_number<std::uint16_t>(),
          .unix_path = json::value_to<std::string>(worker.at("unix"))};
}

/// "train,test"
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    auto name = text.substr(0, text.find(','));
    if (!name.empty()) names.emplace_back(name);
    text.remove_prefix(std::min(name.size() + 1, text.size()));
  }
  return names;
}

DataPlan plan_of(const json::object& text) {
  DataPlan plan;
  plan.run_id = json::value_to<std::string>(text.at("run"));
  plan.key = net::parse_key(text.at("key").as_string()).value();
  plan.encryption = text.at("encryption") == "plain" ? data::Encryption::kPlain : data::Encryption::kTls;
  plan.compression = compression_of(text.at("compression").as_string());
  for (const auto& worker : text.at("workers").as_array()) plan.workers.push_back(worker_of(worker.as_object()));
  plan.buffer_bytes = text.at("buffer_bytes").to_number<std::size_t>();
  plan.units = text.at("units").to_number<std::uint64_t>();
  plan.world_size = std::max(1, text.at("world_size").to_number<int>());
  plan.loaders = names_in(text.at("loader").as_string());
  plan.skips_errors = text.at("on_error") == "skip";
  return plan;
}

}  // namespace

std::uint64_t DataPlan::samples_wanted() const {
  auto ranks = static_cast<std::uint64_t>(world_size);
  return (units + ranks - 1) / ranks;
}

data::WorkerIndex DataPlan::worker_at(std::uint64_t home) const {
  return static_cast<data::WorkerIndex>(home % std::max<std::size_t>(1, workers.size()));
}

DataPlan read_data_plan(const std::string& path) {
  auto unreadable = [&path](const std::string& why) {
    return ConfigError("the data plan " + path + " cannot be read (" + why +
                       "); TAAS_DATA_PLAN is set by taas-run, unset it for a program that runs without");
  };
  auto text = read_file(path);
  if (!text) throw unreadable(text.error().message);
  auto parsed = parse_json(*text);
  if (!parsed) throw unreadable(parsed.error().message);
  try {
    return plan_of(parsed->as_object());
  } catch (const std::exception&) {
    throw unreadable("it is of another release");
  }
}

WatchedDataPlan::WatchedDataPlan(std::string path)
    : path_(std::move(path)), mark_(mark_of(path_)), looked_(steady_now()), plan_(read_data_plan(path_)) {}

bool WatchedDataPlan::has_changed() {
  constexpr Duration kLookEvery = std::chrono::milliseconds(200);
  if (auto now = steady_now(); now - looked_ >= kLookEvery) {
    looked_ = now;
  } else {
    return false;
  }
  auto mark = mark_of(path_);
  if (mark == 0 || mark == mark_) return false;
  mark_ = mark;
  plan_ = read_data_plan(path_);
  return true;
}

}  // namespace taas
