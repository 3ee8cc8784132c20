#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "plan/options/options.hpp"

namespace taas::cli {

/// What a command `taas-run --in NAME …` wants of a session: a launcher that is started as the command itself was.
struct SessionOrder {
  std::vector<std::string> arguments;
  std::string folder;
  std::vector<std::string> environment;  ///< "NAME=value"; the last one is for launcher.py

  /// Of this process.
  static Result<SessionOrder> of_this(const std::vector<std::string>& arguments);
  /// In a file without a name.
  [[nodiscard]] Result<Fd> write() const;
  static Result<SessionOrder> read(const Fd& file);
};

/// What a session does for runs that do not say it themselves.
struct SessionWishes {
  std::string name;
  plan::SizeOptions size;
  std::string preload;
};
BOOST_DESCRIBE_STRUCT(SessionWishes, (), (name, size, preload))

/// For the environment of a launcher that comes from a session: "NAME=value".
std::string wishes_variable(const SessionWishes& wishes);

/// A launcher that came from a session: what it has of it.
struct FromSession {
  SessionWishes wishes;
  plan::SessionPython python;
};

/// Takes that out of this process's environment, and makes the process the agent of the keeper that is there (see
/// be_kept_through()). Nothing where it was started as usual.
std::optional<FromSession> take_from_session();

/// The sizes and modules that the command line has not named are the session's.
void follow_session(const SessionWishes& wishes, plan::Options& options);

}  // namespace taas::cli
