#include "run/events/flight_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json/value.hpp>
#include <map>
#include <utility>

#include "run/events/pickle.hpp"

namespace taas::run {
namespace {

namespace json = boost::json;

struct Dtype {
  std::string_view recorded;
  std::string_view name;
  std::int64_t bytes;
};

// As c10::toString() writes them, and as users do.
constexpr std::array<Dtype, 16> kDtypes{{{"Float", "float32", 4},
                                         {"Half", "float16", 2},
                                         {"BFloat16", "bfloat16", 2},
                                         {"Double", "float64", 8},
                                         {"Long", "int64", 8},
                                         {"Int", "int32", 4},
                                         {"Short", "int16", 2},
                                         {"Char", "int8", 1},
                                         {"Byte", "uint8", 1},
                                         {"Bool", "bool", 1},
                                         {"ComplexFloat", "complex64", 8},
                                         {"ComplexDouble", "complex128", 16},
                                         {"Float8_e4m3fn", "float8_e4m3fn", 1},
                                         {"Float8_e5m2", "float8_e5m2", 1},
                                         {"UInt16", "uint16", 2},
                                         {"UInt32", "uint32", 4}}};

// A program can write any record, and what is read of it goes to the coordinator: no more than a real one may have.
constexpr std::size_t kMostOfText = 1024;
constexpr std::size_t kMostGroups = 128;
constexpr std::size_t kMostMembers = 1 << 20;  // of all groups

const json::value* field(const json::object& object, std::string_view name) { return object.if_contains(name); }

std::string_view text_field(const json::value* value) {
  return value != nullptr && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

std::string string_field(const json::value* value) { return std::string(text_field(value).substr(0, kMostOfText)); }

std::int64_t number_of(const json::value* value) {
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

bool is_true(const json::value* value) { return value != nullptr && value->is_bool() && value->get_bool(); }

const json::array& array_of(const json::value* value) {
  static const json::array none;
  return value != nullptr && value->is_array() ? value->get_array() : none;
}

/// Frames of torch itself say how it is built, not where the user is. They come innermost first.
std::string where_of(const json::array& frames) {
  for (const auto& frame : frames) {
    if (!frame.is_object()) continue;
    auto file = text_field(field(frame.get_object(), "filename"));
    bool by_user = file.ends_with(".py") && file.find("/torch/") == file.npos;
    if (by_user) {
      const auto name = file.substr(file.rfind('/') + 1);
      return fmt::format("{}:{}", name.substr(0, kMostOfText), number_of(field(frame.get_object(), "line")));
    }
  }
  return {};
}

/// Of a tensor, which has no more than so many.
std::vector<std::int64_t> dimensions_of(const json::value& size) {
  constexpr std::size_t kMostDimensions = 64;
  std::vector<std::int64_t> dimensions;
  for (const auto& dimension : array_of(&size)) {
    if (dimensions.size() < kMostDimensions) dimensions.push_back(number_of(&dimension));
  }
  return dimensions;
}

/// 0 where there is no such number, of no real tensor.
std::int64_t product(std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(left, right, &result) ? 0 : result;
}

std::int64_t sum(std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  return __builtin_add_overflow(left, right, &result) ? 0 : result;
}

void add_shape(const json::object& entry, CollectiveCall& call) {
  const auto& sizes = array_of(field(entry, "input_sizes"));
  const auto& dtypes = array_of(field(entry, "input_dtypes"));
  std::vector<std::string> shapes;
  std::size_t length = 0;
  for (std::size_t i = 0; i < sizes.size() && length < kMostOfText; ++i) {
    auto recorded = i < dtypes.size() ? string_field(&dtypes[i]) : std::string();
    auto known = std::ranges::find(kDtypes, recorded, &Dtype::recorded);
    auto dimensions = dimensions_of(sizes[i]);
    std::int64_t bytes = known == kDtypes.end() ? 0 : known->bytes;
    for (auto dimension : dimensions) bytes = product(bytes, dimension);
    call.bytes = sum(call.bytes, bytes);
    if (known != kDtypes.end()) recorded = known->name;
    call.dtype = i == 0 || call.dtype == recorded ? recorded : std::string();
    shapes.push_back(fmt::format("[{}] {}", fmt::join(dimensions, ", "), recorded));
    length += shapes.back().size();
  }
  call.shape = fmt::format("{}", fmt::join(shapes, ", "));
}

CollectiveCall call_of(const json::object& entry) {
  CollectiveCall call;
  call.number = number_of(field(entry, "collective_seq_id"));
  auto profiled = string_field(field(entry, "profiling_name"));  // "nccl:all_reduce"
  call.operation = profiled.substr(profiled.find(':') + 1);
  call.where = where_of(array_of(field(entry, "frames")));
  auto state = string_field(field(entry, "state"));
  call.completed = state == "completed";
  call.started = state == "started" || number_of(field(entry, "time_discovered_started_ns")) > 0;
  call.blocking = profiled.starts_with("gloo:");
  call.timeout_ms = number_of(field(entry, "timeout_ms"));
  add_shape(entry, call);
  return call;
}

/// "[0, 1, 2]" as a list; nothing if there are more than so many.
std::vector<int> ranks_of(std::string_view text, std::size_t most) {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < text.size();) {
    if (ranks.size() > most) return {};
    int rank = 0;
    auto begin = i;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9' && rank < 100'000'000; ++i)
      rank = rank * 10 + text[i] - '0';
    if (i > begin) ranks.push_back(rank);
    if (i == begin || i < text.size()) ++i;
  }
  return ranks;
}

std::vector<int> members_of(const json::object& record, const std::string& group, std::size_t most) {
  const auto* configured = field(record, "pg_config");
  if (configured == nullptr || !configured->is_object()) return {};
  for (const auto& [id, config] : configured->get_object()) {
    if (!config.is_object()) continue;
    bool same = id == group || string_field(field(config.get_object(), "name")) == group;
    if (same) return ranks_of(text_field(field(config.get_object(), "ranks")), most);
  }
  return {};
}

void add(const json::object& entry, std::size_t most, std::vector<CollectiveGroup>& groups) {
  const auto& named = array_of(field(entry, "process_group"));  // name, description
  auto name = named.empty() ? std::to_string(number_of(field(entry, "pg_id"))) : string_field(&named[0]);
  auto group = std::ranges::find(groups, name, &CollectiveGroup::name);
  if (group == groups.end() && groups.size() == kMostGroups) return;
  if (group == groups.end()) {
    groups.push_back({name, named.size() < 2 ? std::string() : string_field(&named[1]), {}, {}});
    group = groups.end() - 1;
  }
  group->calls.push_back(call_of(entry));
  if (group->calls.size() > most) group->calls.erase(group->calls.begin());
}

}  // namespace

std::optional<std::vector<CollectiveGroup>> read_flight_record(std::string_view bytes, std::size_t most) {
  auto read = read_pickle(bytes);
  if (!read || !read->is_object()) return std::nullopt;
  const auto& record = read->get_object();
  const auto* entries = field(record, "entries");
  if (entries == nullptr || !entries->is_array()) return std::nullopt;
  std::vector<CollectiveGroup> groups;
  for (const auto& entry : entries->get_array()) {
    if (!entry.is_object() || is_true(field(entry.get_object(), "is_p2p"))) continue;
    add(entry.get_object(), most, groups);
  }
  auto members_left = kMostMembers;
  for (auto& group : groups) {
    group.members = members_of(record, group.name, members_left);
    members_left -= group.members.size();
  }
  return groups;
}

}  // namespace taas::run
