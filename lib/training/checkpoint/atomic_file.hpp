#pragma once

#include <string>
#include <string_view>

namespace taas {

/// Puts `bytes` at `path` so that at every instant, a crash included, the path holds either the former file or all of
/// the new one: written beside it, synced, renamed, folder synced. Throws CheckpointError naming path and cause.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace taas
