#pragma once

namespace taas {

/// Of taas-run, as in "0.1.0". One array in a file of its own: a new version compiles that file alone, and the bytes
/// can be found in the program, where a literal may end up within instructions.
extern const char kLauncherVersion[];

}  // namespace taas
