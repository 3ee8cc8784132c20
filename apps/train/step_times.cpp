#include "step_times.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "input_error.hpp"

namespace taas::train {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw InputError(fmt::format("cannot write the step times to {}: {}; give --plot another file", path,
                               std::generic_category().message(errno)));
}

/// The labels are our own: nothing in them has to be escaped.
std::string quoted(const std::string& text) { return '"' + text + '"'; }

template <class Values, class Write>
std::string list_of(const Values& values, Write&& write) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : ", ") + write(value);
  return '[' + text + ']';
}

std::string numbers(const std::vector<double>& values) {
  return list_of(values, [](double value) { return fmt::format("{:.6f}", value); });
}

}  // namespace

std::string to_json(const Plot& plot) {
  auto text = fmt::format("{{\"ylabel\": {},\n \"bars\": ", quoted(plot.ylabel));
  text += list_of(plot.bars, [](const StepTimes& bar) {
    return fmt::format("{{\"label\": {}, \"seconds\": {}}}", quoted(bar.label), numbers(bar.seconds));
  });
  if (!plot.split_sizes.empty()) {
    text += fmt::format(",\n \"curve\": {{\"split_size\": {}, \"seconds\": {}}}",
                        list_of(plot.split_sizes, [](std::int64_t size) { return std::to_string(size); }),
                        list_of(plot.split_seconds, numbers));
  }
  return text + "}\n";
}

void check_plot_file(const std::string& path) {
  if (!std::ofstream(path, std::ios::app)) fail(path);
}

void write_plot(const std::string& path, const Plot& plot) {
  std::ofstream file(path);
  file << to_json(plot) << std::flush;
  if (!file) fail(path);
}

}  // namespace taas::train
