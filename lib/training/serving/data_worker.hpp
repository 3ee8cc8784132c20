#pragma once

#include <vector>

#include "training/serving/known_loader.hpp"

namespace taas {

/// Makes what --loader names, and answers what ranks ask for, until the process that started this one is gone. Throws
/// ConfigError for an environment that is not a data worker's, and for a --loader that cannot be prepared.
void serve_jobs(const std::vector<KnownLoader>& loaders);

}  // namespace taas
