#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/program/program.hpp"

namespace taas {

/// Finds programs on this machine: in PATH, among those shipped beside the launcher, and the Python interpreter.
class LocalPrograms : public plan::ProgramFinder {
 public:
  explicit LocalPrograms(const std::map<std::string, std::string>& environment);

  plan::FileKind kind(const std::string& path) const override;
  std::string beginning(const std::string& path) const override;
  std::string find_in_path(const std::string& name) const override;
  std::string find_shipped(const std::string& name) const override;
  Result<std::string> find_python() const override;
  std::string remark_on(const std::string& python) const override;

 private:
  std::string path_;
  std::string chosen_python_;  // $PYTHON_EXEC
  std::vector<std::string> variables_;
};

/// This executable's file.
std::string own_path();

/// The file that was executed, under the name it was called by: a link stays one (~/.local/bin/taas-run), so that
/// another machine of the cluster finds it in the same way.
std::string called_path();

/// A folder of lib/python that came with this launcher: beside it in a build folder, in lib/taas of an installation or
/// an environment. Empty when there is none.
std::string python_part(const std::string& name);

/// What PYTHONPATH needs so that programs can import the package `taas`. Empty in an environment, where it lies with
/// the other packages, and where it is not installed.
std::string python_packages();

}  // namespace taas
