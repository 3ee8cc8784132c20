#include "launch/failure_record.hpp"

#include <fcntl.h>

#include <cerrno>
#include <ctime>

#include "base/environment/environment.hpp"
#include "base/fd.hpp"
#include "base/files.hpp"
#include "run/verdict/error_file.hpp"

namespace taas::launch {

Result<> record_failure(const run::Verdict& verdict, const std::map<std::string, std::string>& environment) {
  const auto path = value_of(environment, "TORCHELASTIC_ERROR_FILE");
  if (path.empty() || verdict.cause == run::Cause::kSuccess) return {};
  const auto name = "TORCHELASTIC_ERROR_FILE " + path;
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0644));
  if (!file) return system_error("cannot write " + name, errno);
  auto written = write_all(file, run::print_error_file(verdict, std::time(nullptr)));
  if (!written) return std::move(written).error().with(name);
  return {};
}

}  // namespace taas::launch
