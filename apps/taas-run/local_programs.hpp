#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/program.hpp"

namespace taas {

/// Finds programs on this machine: in PATH, among those shipped beside the launcher, and the Python interpreter.
class LocalPrograms : public plan::ProgramFinder {
 public:
  explicit LocalPrograms(const std::map<std::string, std::string>& environment);

  plan::FileKind kind(const std::string& path) const override;
  std::string find_in_path(const std::string& name) const override;
  std::string find_shipped(const std::string& name) const override;
  std::string find_python() const override;

 private:
  std::string path_;
  std::vector<std::string> variables_;
};

/// The folder of the Python package `taas` that belongs to this launcher: beside it in a build folder, in lib of an
/// installation. Empty when there is none.
std::string python_packages();

}  // namespace taas
