#pragma once

#include <boost/describe/class.hpp>
#include <string>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "command/documents.hpp"

namespace taas::cli {

// What commands and a session (`taas-run up`) say to each other, over a socket that keeps messages apart, in a folder
// that only its user may enter: one JSON object each.

inline constexpr const char* kSessionSocket = "session";  // in a private folder of the session's

/// To a session.
struct SessionAsks {
  std::string ask;  ///< "who", "run" (with descriptors: see SessionOrder), "signal", "down"
  int signal = 0;
};

/// From a session.
struct SessionSays {
  std::string say;  ///< "here", "waiting", "refused", "ended"
  std::string text = {};
  int code = 0;
  SessionState state = {};
  std::string build = {};  ///< as build_of_this() of the session
};

BOOST_DESCRIBE_STRUCT(SessionAsks, (), (ask, signal))
BOOST_DESCRIBE_STRUCT(SessionSays, (), (say, text, code, state, build))

struct FoundSession {
  SessionState state;
  std::string build;
  Fd socket;
};

/// The user's own on this machine, by name.
Result<std::vector<FoundSession>> find_sessions(const Environment& environment);

/// One of them; an error names those that there are.
Result<FoundSession> find_session(const std::string& name, const Environment& environment);

Result<> tell(const Fd& session, const SessionAsks& what, const std::vector<int>& descriptors = {});

/// What it says next. It has ended: an error.
Result<SessionSays> hear(const Fd& session);

/// Tells one taas-run from another of the same version.
std::string build_of_this();

}  // namespace taas::cli
