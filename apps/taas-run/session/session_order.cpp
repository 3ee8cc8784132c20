#include "session/session_order.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "plan/program/preload.hpp"
#include "proc/family/keeper.hpp"
#include "proc/spawn/signals.hpp"
#include "start/local_programs.hpp"

namespace taas::cli {
namespace {

constexpr const char* kOrder = "TAAS_SESSION_ORDER";  // as in lib/python/preload/taas_preload/launcher.py
constexpr const char* kInherited = "TAAS_SESSION";    // likewise
constexpr const char* kWishes = "TAAS_SESSION_WISHES";

/// -1, all bits set, is no limit, here as in Python's module `resource`.
std::string limits() {
  std::string text;
  for (int kind = 0; kind < RLIM_NLIMITS; ++kind) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource>(kind), &limit) != 0) continue;
    const auto number = [](rlim_t value) { return static_cast<std::int64_t>(value); };
    text += fmt::format("\n{} {} {}", kind, number(limit.rlim_cur), number(limit.rlim_max));
  }
  return text;
}

/// Numbers with blanks between them.
std::string cpus_of_this() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return "";  // more than it has room for
  std::string text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) text += fmt::format("{}{}", text.empty() ? "" : " ", cpu);
  }
  return text;
}

mode_t umask_of_this() {
  const auto mask = ::umask(0);
  ::umask(mask);
  return mask;
}

std::optional<std::string> take_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  std::string text = value;
  ::unsetenv(name);
  return text;
}

bool is_socket(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

std::vector<int> read_numbers(const std::string& text) {
  std::vector<int> numbers;
  for (auto part : split(text, ' ')) {
    int number = -1;
    const auto end = std::from_chars(part.data(), part.data() + part.size(), number);
    if (end.ec != std::errc()) return {};
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

Result<SessionOrder> SessionOrder::of_this(const std::vector<std::string>& arguments) {
  SessionOrder order;
  order.arguments = arguments;
  char folder[PATH_MAX];
  if (::getcwd(folder, sizeof folder) == nullptr) return system_error("the working directory", errno);
  order.folder = folder;
  for (char** entry = environ; *entry != nullptr; ++entry) order.environment.emplace_back(*entry);
  order.environment.push_back(fmt::format("{}={}\n{}\n{}\n{}{}", kOrder, called_path(), umask_of_this(),
                                          is_ignored(SIGHUP) ? 1 : 0, cpus_of_this(), limits()));
  return order;
}

Result<Fd> SessionOrder::write() const {
  std::string text = std::to_string(arguments.size());
  text.push_back('\0');
  const auto add = [&text](const std::string& word) { text.append(word).push_back('\0'); };
  for (const auto& word : arguments) add(word);
  add(folder);
  for (const auto& variable : environment) add(variable);
  return file_in_memory("taas-order", text);
}

Result<SessionOrder> SessionOrder::read(const Fd& file) {
  const auto text = read_all(file);
  if (!text) return text.error();
  const auto words = split(*text, '\0');
  std::size_t count = 0;
  std::from_chars(words[0].data(), words[0].data() + words[0].size(), count);
  if (count == 0 || words.size() < count + 4) return protocol_error("an order cannot be read");
  SessionOrder order;
  order.arguments.assign(words.begin() + 1, words.begin() + 1 + static_cast<std::ptrdiff_t>(count));
  order.folder = words[count + 1];
  order.environment.assign(words.begin() + static_cast<std::ptrdiff_t>(count) + 2, words.end() - 1);
  return order;
}

std::string wishes_variable(const SessionWishes& wishes) {
  return fmt::format("{}={}", kWishes, boost::json::serialize(to_json(wishes)));
}

/// Anybody can set a variable: only a process that launcher.py has made has such descriptors and such a parent.
std::optional<FromSession> take_from_session() {
  const auto inherited = take_variable(kInherited);
  const auto wishes = take_variable(kWishes);
  if (!inherited) return std::nullopt;
  const auto numbers = read_numbers(*inherited);
  if (numbers.size() != 4 || ::getppid() != numbers[3] || !is_socket(numbers[0]) || !is_socket(numbers[1])) {
    return std::nullopt;
  }
  for (int descriptor : {numbers[0], numbers[1]}) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  be_kept_through(Fd(numbers[1]));
  FromSession from{{}, {numbers[0], numbers[2]}};
  const auto json = parse_json(wishes.value_or(""));
  if (auto read = json ? from_json<SessionWishes>(*json) : Result<SessionWishes>(json.error())) from.wishes = *read;
  return from;
}

void follow_session(const SessionWishes& wishes, plan::Options& options) {
  if (to_json(options.size) == to_json(plan::SizeOptions())) options.size = wishes.size;
  if (options.program.preload == plan::kPreloadAuto) options.program.preload = wishes.preload;
}

}  // namespace taas::cli
