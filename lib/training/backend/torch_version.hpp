#pragma once

#include <string>
#include <string_view>

namespace taas {

/// "2.15.0": of the libtorch that this process has loaded, as the files beside it say (those of a wheel, or of torch's
/// archive for C++); empty where there are none. ATen is not asked: its answer has CUDA's part in it, so that a question
/// before main() would let ATen look for CUDA before what knows of it is loaded (nccl.hpp), and never again.
std::string loaded_torch_version();

/// Why a library that was built with one version cannot be used with the other; empty: it can. A release of torch keeps
/// its binary interface in patches, and changes it in minor versions.
std::string version_mismatch(std::string_view what, std::string_view built_with, std::string_view loaded);

/// Keeps the check in a program that is linked statically: it is done when the library is loaded, and ends the process
/// with one line and exit code 2.
void check_torch_version();

}  // namespace taas
