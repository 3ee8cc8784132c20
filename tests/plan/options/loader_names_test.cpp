#include "plan/options/loader_names.hpp"

#include "catch.hpp"

namespace loader_names_test {

using namespace taas;
using namespace taas::plan;

TEST_CASE("loaders are attributes of modules") {
  for (const auto* name : {"data:train", "own.data:loaders.val", "größe:größe"})
    CHECK(check_loader_name(name).has_value());
  for (const auto* name : {"", "train", ":train", "data:", "a b:c", "data:train:x", "data:a,data:b", "data:a\nb"}) {
    const auto checked = check_loader_name(name);
    REQUIRE_FALSE(checked.has_value());
    CHECK_THAT(checked.error().message, ContainsSubstring("not MODULE:NAME"));
    CHECK(checked.error().code == ErrorCode::kUsage);
  }
}

}  // namespace loader_names_test
