#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk_thread.hpp"
#include "base/error.hpp"
#include "plan/options/launch_settings.hpp"
#include "run/messages/code_frames.hpp"

namespace taas::node {

/// Sees to it that this machine has the files of the program that the coordinator's user has: where the folder of the
/// same name has them all, ranks work there, and nothing is copied; else a copy below the run's folder has them. A
/// folder that has only some of them, or others, is left to the user, who is told, unless a copy was asked for. What
/// this machine has had before comes out of its cache, the rest over the link. Disks are left to a thread of its own.
class CodeCopy {
 public:
  struct Options {
    std::map<std::string, std::string> environment;
    std::string name;                             ///< of the copy, in the run's folder
    std::function<void(std::string frame)> send;  ///< run/messages/code_frames.hpp
    std::function<void()> on_ready;               ///< called in the event loop when busy() ends
    std::function<void(std::string)> remark;
  };
  CodeCopy(boost::asio::io_context& io, Options options);
  /// Removes the copy, but for what ranks have written into it.
  ~CodeCopy();

  /// What the coordinator says. An error: it does not keep to the rules.
  Result<> hear(std::string_view frame);
  /// Nothing more comes; busy() ends.
  void link_is_lost();
  /// The files are not all there yet.
  [[nodiscard]] bool busy() const;
  /// Why they are not.
  [[nodiscard]] Result<> state() const;
  /// The same settings with the copy in place of the user's folder.
  [[nodiscard]] plan::LaunchSettings redirect(plan::LaunchSettings settings) const;
  /// Tells what ranks have written into the copy, where it stays, and calls back.
  void tell_left(std::function<void()> then);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The settings for a machine where the program's folder is `copy`: what is executed, where, and PYTHONPATH.
plan::LaunchSettings redirect(plan::LaunchSettings settings, const std::string& folder, const std::string& copy,
                              const std::vector<run::CodeFile>& files);

}  // namespace taas::node
