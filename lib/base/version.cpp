#include "base/version.hpp"

namespace taas {

const char kLauncherVersion[] = TAAS_VERSION;

}  // namespace taas
