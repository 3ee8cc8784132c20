#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json/published_json.hpp"

namespace taas::cli {

/// Whether standard output has taken it.
bool print_now(const std::string& text);

/// One line of JSON. Returns the exit code.
template <class T>
int print_document(const T& document) {
  return print_now(published_document(document) + "\n") ? 0 : 1;
}

/// A command that is the first word of a command line, with options of its own.
class Subcommand {
 public:
  /// `name`: that word; `what`: what it does, for its help.
  Subcommand(const std::string& name, const std::string& what) : app(what, "taas-run " + name), name_(name) {
    app.add_flag("--json", as_json, "JSON, for programs");
  }

  /// `arguments`: what follows the word. The exit code where they only asked for help. An error names the option that a
  /// mistyped one most likely means.
  Result<std::optional<int>> parse(const std::vector<std::string>& arguments);

  CLI::App app;
  bool as_json = false;

 private:
  std::string name_;
};

}  // namespace taas::cli
