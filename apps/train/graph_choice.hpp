#pragma once

#include <string>
#include <string_view>

namespace taas::train {

/// What decides how a recorded step behaves on a machine.
struct GpuVersions {
  std::string driver;  ///< "580.65.06"
  std::string torch;   ///< "2.15.0", without a build's suffix
  std::string nccl;    ///< "2.30.7"
};

/// Of this machine, and of this process once torch has loaded NCCL; empty where it is not known.
GpuVersions present_versions(std::string torch);

/// The file that scripts/check-gpu keeps in the user's cache folder: a line for each of its checks that was green, and
/// one named "all" where all were, with tabs between name, date, driver, torch, NCCL and machine.
std::string check_record();

/// Whether all of scripts/check-gpu was green with these versions, by the text of that file.
bool was_all_green(std::string_view record, const GpuVersions& versions);

}  // namespace taas::train
