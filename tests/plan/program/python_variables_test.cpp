#include "plan/program/python_variables.hpp"

#include "catch.hpp"

namespace python_variables_test {

namespace {

using namespace taas::plan;
using List = std::vector<std::string>;

TEST_CASE("ways to set a variable, and to remove one") {
  for (auto text : {"os.environ['A_1'] = '1'", "environ[\"A_1\"]='1'", "os.environ[ 'A_1' ] += ':x'",
                    "os.environb[b'A_1'] = b'1'", "os.environ.setdefault(\"A_1\", \"2\")", "    os.putenv('A_1', '0')",
                    "del os.environ['A_1']", "os.environ.pop('A_1', None)", "os.unsetenv('A_1')",
                    "x = 1; del environ['A_1']", "os.environ.update({'A_1': 'b'})", "os.environ.update(A_1='b')",
                    "os.environ.update(dict(A_1=str(3)))", "os.environ.update({\n    # why\n    'A_1': 'b',\n})",
                    "os.environ |= {'A_1': 'b'}", "os.environ.__setitem__('A_1', 'b')"}) {
    CAPTURE(text);
    CHECK(variables_set(text).names == List{"A_1"});
  }
  CHECK(variables_set("os.environ.update({'A': 'x', \"B\": f(1), **{'C': ''}})").names == List{"A", "B", "C"});
  CHECK(variables_set("os.environ.update(A='x', B=y)\nos.environ['C'] = os.environ['D'] = z").names ==
        List{"A", "B", "C", "D"});
}

TEST_CASE("what sets nothing") {
  for (auto text : {"", "# os.environ['A'] = '1'", "n = int(os.environ.get('A', 1))", "if os.environ['A'] == '1':",
                    "x['A'] = 1", "run(env={**os.environ, 'A': '1'})", "model(os.environ['A'])", "'A' in os.environ",
                    "environment['A'] = 1", "env = dict(os.environ, A='1')"}) {
    CAPTURE(text);
    CHECK(variables_set(text).names.empty());
  }
}

TEST_CASE("where a name is computed, it may be any that is in quotes and not only asked for") {
  const std::string loop = "for name in ['OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'small']:\n    ";
  for (auto text :
       {"os.environ[name] = '1'", "os.putenv(name, '1')", "os.environ.update(all)", "os.environ['X_' + name] = '1'"}) {
    CAPTURE(text);
    CHECK(variables_set(loop + text + "\nhome = os.environ.get('HOME')").names ==
          List{"OMP_NUM_THREADS", "MKL_NUM_THREADS"});
  }
}

TEST_CASE("where no name in quotes can be it, variables are set that nobody knows") {
  CHECK(variables_set("os.environ[name] = value").others);
  CHECK(variables_set("os.environ.update(read('settings'))").others);
  CHECK(variables_set("from dotenv import load_dotenv\nload_dotenv()").others);
  CHECK_FALSE(variables_set("os.environ['A'] = value").others);
  CHECK_FALSE(variables_set("for name in ['A_1', 'B_1']: os.environ[name] = ''").others);
  CHECK_FALSE(variables_set("value = os.environ[name]").others);
}

}  // namespace

}  // namespace python_variables_test
