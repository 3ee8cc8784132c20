#include "plan/environment/tensorflow_config.hpp"

#include "catch.hpp"

namespace tensorflow_config_test {

using namespace taas;

TEST_CASE("TF_CONFIG names all workers and this one's place") {
  CHECK(plan::tensorflow_config({"a:1", "[fe80::1]:2"}, Rank{1}) ==
        R"({"cluster":{"worker":["a:1","[fe80::1]:2"]},"task":{"type":"worker","index":1}})");
}

}  // namespace tensorflow_config_test
