#pragma once

#include <string>

namespace taas {

/// Why a file cannot be read as torch.save's, by its first bytes, with the way out: "… is cut off or damaged: …". It
/// follows the path.
std::string explain_unreadable(const std::string& path);

}  // namespace taas
