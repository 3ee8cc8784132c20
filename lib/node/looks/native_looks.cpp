#include "node/looks/native_looks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <iostream>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "proc/spawn/command_output.hpp"

namespace taas::node {
namespace {

constexpr auto kNamingPatience = std::chrono::seconds(2);
constexpr std::size_t kMostFrames = 48;

/// A StackSnapshot without its bytes, which follow behind all of these.
struct SnapshotHead {
  int pid = 0;
  int tid = 0;
  std::uint64_t instruction = 0;
  std::uint64_t stack_pointer = 0;
  std::size_t bytes = 0;
};
BOOST_DESCRIBE_STRUCT(SnapshotHead, (), (pid, tid, instruction, stack_pointer, bytes))

bool begins_with_any(std::string_view text, const auto& beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view one) { return text.starts_with(one); });
}

/// What is not of the user's, as far as names and places tell.
bool is_of_a_library(const NativeFrame& frame) {
  constexpr std::array<std::string_view, 16> kNames{
      "std::",  "__gnu_cxx::", "torch::",  "at::", "c10::",  "c10d::",       "caffe2::",     "gloo::",
      "taas::", "boost::",     "pthread_", "nccl", "_start", "__libc_start", "operator new", "__"};
  constexpr std::array<std::string_view, 3> kModules{"/usr/lib", "/lib", "["};
  constexpr std::array<std::string_view, 8> kParts{"/usr/include/",   "/include/c++/",  "/include/torch/",
                                                   "/include/ATen/",  "/include/c10/",  "/include/taas/",
                                                   "/site-packages/", "/dist-packages/"};
  const auto has = [](std::string_view text, const auto& parts) {
    return std::ranges::any_of(parts, [&](std::string_view part) { return contains(text, part); });
  };
  const auto name = std::string_view(frame.module).substr(frame.module.rfind('/') + 1);
  return begins_with_any(frame.function, kNames) || begins_with_any(frame.module, kModules) ||
         has(frame.file, kParts) || has(frame.module, kParts) || name.starts_with("libtaas") ||
         name.starts_with("libtorch") || name.starts_with("libc10");
}

/// Not what is before main(), or a function of a library that has no name.
bool tells(const NativeFrame& frame) {
  constexpr std::array<std::string_view, 4> kBegins{"_start", "__libc_start", "clone", "start_thread"};
  return !begins_with_any(frame.function, kBegins) && (!frame.function.empty() || !is_of_a_library(frame));
}

Result<Fd> request_for(const std::vector<StackSnapshot>& snapshots) {
  std::vector<SnapshotHead> heads;
  std::string bytes;
  for (const auto& one : snapshots) {
    heads.push_back({one.pid, one.tid, one.instruction, one.stack_pointer, one.stack.size()});
    bytes += one.stack;
  }
  return file_in_memory("taas-stacks", boost::json::serialize(to_json(heads)) + "\n" + bytes);
}

NamedStack name_stack(NativeReader& reader, StackSnapshot snapshot) {
  NamedStack named{snapshot.tid, {}, {}};
  auto frames = reader.read(std::move(snapshot));
  if (!frames) {
    named.unread = frames.error().message;
    return named;
  }
  for (const auto& frame : *frames) {
    if (named.frames.size() < kMostFrames && tells(frame)) named.frames.push_back(seen_frame(frame));
  }
  return named;
}

}  // namespace

run::SeenFrame seen_frame(const NativeFrame& frame) {
  const auto module = frame.module.substr(frame.module.rfind('/') + 1);
  if (is_of_a_library(frame)) return {frame.function, fmt::format("<{}>", module), 0};
  return {frame.function, frame.file.empty() ? frame.module : frame.file, frame.line};
}

std::vector<NamedStack> name_frames(const std::vector<StackSnapshot>& snapshots) {
  if (snapshots.empty()) return {};
  const auto request = request_for(snapshots);
  if (!request) return {};
  const auto end = run_command({"/proc/self/exe", kNameFramesFlag}, kNamingPatience, Complaints::kDropped, &*request);
  const auto value = end ? parse_json(end->output) : Result<boost::json::value>(end.error());
  auto named = value ? from_json<std::vector<NamedStack>>(*value) : Result<std::vector<NamedStack>>(value.error());
  return named ? std::move(*named) : std::vector<NamedStack>();
}

int name_frames_for_agent() {
  std::string line;
  std::getline(std::cin, line);
  const auto value = parse_json(line);
  const auto heads =
      value ? from_json<std::vector<SnapshotHead>>(*value) : Result<std::vector<SnapshotHead>>(value.error());
  if (!heads) return 1;
  auto reader = NativeReader::load();
  std::vector<NamedStack> result;
  for (const auto& head : *heads) {
    StackSnapshot snapshot{head.pid, head.tid, head.instruction, head.stack_pointer, std::string(head.bytes, '\0')};
    std::cin.read(snapshot.stack.data(), static_cast<std::streamsize>(head.bytes));
    result.push_back(reader ? name_stack(*reader, std::move(snapshot))
                            : NamedStack{head.tid, {}, reader.error().message});
  }
  std::cout << boost::json::serialize(to_json(result)) << std::flush;
  return 0;
}

}  // namespace taas::node
