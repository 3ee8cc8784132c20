#pragma once

#include <string>

namespace taas::cli {

/// docs/schema.json: what the journal and --json have, in JSON Schema.
std::string json_schema();

}  // namespace taas::cli
