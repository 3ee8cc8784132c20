#include "plan/launch_mode/host_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "plan/options/numbers.hpp"

namespace taas::plan {
namespace {

constexpr const char* kWhatIsRight = "not a host, such as node7, node7:8, user@node7 or [::1]:8";

Result<int> read_slots(std::string_view entry, std::string_view text) {
  auto slots = parse_integer(text);
  if (slots && *slots > 0) return *slots;
  return usage_error(entry, fmt::format("{} is not a number of slots, such as 8", text.empty() ? "nothing" : text));
}

/// A name that ssh takes for an option, or that holds what no name does, is refused before it reaches a command line.
bool is_host_name(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-%:";
  return !text.empty() && text.front() != '-' && text.find_first_not_of(kLetters) == text.npos;
}

/// Where in "name:8" the slots begin: npos in a name without them, and in a bare IPv6 address.
std::size_t colon_before_slots(std::string_view text) {
  auto colon = text.rfind(':');
  auto bracket = text.rfind(']');
  if (bracket != text.npos) return colon != text.npos && colon > bracket ? colon : text.npos;
  return text.find(':') == colon ? colon : text.npos;
}

Result<Host> read_host(std::string_view entry) {
  Host host;
  auto rest = entry;
  if (auto at = rest.find('@'); at != rest.npos) {
    host.user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    if (!is_host_name(host.user)) return usage_error(entry, kWhatIsRight);
  }
  if (auto colon = colon_before_slots(rest); colon != rest.npos) {
    auto slots = read_slots(entry, rest.substr(colon + 1));
    if (!slots) return slots.error();
    host.slots = *slots;
    rest = rest.substr(0, colon);
  }
  if (rest.size() > 2 && rest.front() == '[' && rest.back() == ']') rest = rest.substr(1, rest.size() - 2);
  if (!is_host_name(rest)) return usage_error(entry, kWhatIsRight);
  host.name = rest;
  return host;
}

Result<> add(std::vector<Host>& hosts, Host host) {
  auto same = std::ranges::find(hosts, host.name, &Host::name);
  if (same == hosts.end()) {
    hosts.push_back(std::move(host));
    return {};
  }
  if (same->user != host.user) return usage_error(fmt::format("{}: named with two users", host.name));
  same->slots = same->slots.value_or(1) + host.slots.value_or(1);
  return {};
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = trim(line); !line.empty(); line = trim(line)) {
    words.push_back(line.substr(0, line.find_first_of(kBlanks)));
    line.remove_prefix(words.back().size());
  }
  return words;
}

/// "slots=8" after the name; "slots = 8" is accepted where words are joined.
Result<> read_attribute(std::string_view attribute, Host& host) {
  auto equals = attribute.find('=');
  auto key = attribute.substr(0, equals);
  if (equals == attribute.npos || (key != "slots" && key != "max_slots" && key != "max-slots")) {
    return usage_error(attribute, "not slots=NUMBER");
  }
  auto slots = read_slots(attribute, attribute.substr(equals + 1));
  if (!slots) return slots.error();
  if (key == "slots") host.slots = *slots;  // the other word bounds oversubscription, which is asked for elsewhere
  return {};
}

Result<Host> read_line(std::string_view line) {
  auto words = words_of(line);
  auto host = read_host(words.front());
  if (!host) return host;
  if (words.size() > 1) {
    if (auto slots = parse_integer(words[1]); slots && *slots > 0) {
      host->slots = *slots;
      return host;
    }
  }
  std::string attribute;
  for (std::size_t i = 1; i < words.size(); ++i) {
    attribute += words[i];
    bool goes_on = attribute.back() == '=' || (i + 1 < words.size() && words[i + 1].front() == '=');
    if (goes_on && i + 1 < words.size()) continue;
    if (auto read = read_attribute(attribute, *host); !read) return read.error();
    attribute.clear();
  }
  return host;
}

}  // namespace

std::string destination(const Host& host) { return host.user.empty() ? host.name : host.user + "@" + host.name; }

Result<std::vector<Host>> parse_hosts(std::string_view text) {
  std::vector<Host> hosts;
  for (auto part : split(trim(text, " \t\r\n,"), ',')) {
    auto host = read_host(trim(part));
    if (!host) return host.error();
    if (auto added = add(hosts, std::move(*host)); !added) return added.error();
  }
  return hosts;
}

Result<std::vector<Host>> parse_hostfile(std::string_view text) {
  std::vector<Host> hosts;
  int number = 0;
  for (auto line : split(text, '\n')) {
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    auto host = read_line(line);
    if (!host) return std::move(host).error().with(fmt::format("line {}", number));
    if (auto added = add(hosts, std::move(*host)); !added) {
      return std::move(added).error().with(fmt::format("line {}", number));
    }
  }
  if (hosts.empty()) return usage_error("no host in it");
  return hosts;
}

}  // namespace taas::plan
