#include "plan/options/loader_names.hpp"

#include "catch.hpp"

namespace loader_names_test {

using namespace taas;
using namespace taas::plan;

TEST_CASE("a loader may have any name that fits into the data plan") {
  for (const auto* name : {"train", "data:train_loader", "val 2", "größe", "a/b-c"})
    CHECK(check_loader_name(name).has_value());
  CHECK(check_loader_name("").error().message == "the name is empty");
  CHECK_THAT(check_loader_name("a,b").error().message, ContainsSubstring("--loader may be repeated"));
  CHECK(check_loader_name("a\nb").error().message == "a name has no control characters");
}

TEST_CASE("loaders of Python are attributes of modules") {
  CHECK(check_python_loaders("").has_value());
  CHECK(check_python_loaders("data:train").has_value());
  CHECK(check_python_loaders("own.data:train,own.data:loaders.val").has_value());
  for (const auto* name : {"train", ":train", "data:", "a b:c", "data:train:x"}) {
    const auto checked = check_python_loaders(std::string("data:train,") + name);
    REQUIRE_FALSE(checked.has_value());
    CHECK(checked.error().message == "--loader " + std::string(name) + ": not MODULE:NAME, such as data:train_loader");
    CHECK(checked.error().code == ErrorCode::kUsage);
  }
}

}  // namespace loader_names_test
