#include "plan/program/python_file.hpp"

#include "catch.hpp"

namespace python_file_test {

using taas::plan::why_not_a_program;
using taas::plan::why_not_python;

TEST_CASE("what may be Python is left to Python") {
  CHECK(why_not_python("script", "import torch\n").empty());
  CHECK(why_not_python("empty", "").empty());
  CHECK(why_not_python("latin", "# -*- coding: latin-1 -*-\nname = '\xe9'\n").empty());
  CHECK(why_not_python("x", "#!/usr/bin/env python3\n").empty());
  CHECK(why_not_python("x", "#! /opt/pypy/bin/pypy3").empty());
  CHECK(why_not_python("x", "#!/usr/bin/env -S uv run --script\nimport torch\n").empty());
  CHECK(why_not_python("app.pyz", std::string("#!/usr/bin/python3\nPK\3\4\0", 24)).empty());
  CHECK(why_not_python("app.zip", std::string("PK\3\4\0", 5)).empty());
  CHECK(why_not_python("x.pyc", std::string("\xa7\r\r\n\0", 5)).empty());
}

TEST_CASE("what is not Python is refused with a way out") {
  CHECK(why_not_python("run.sh", "#!/bin/bash\n") ==
        "not executable, and its first line asks for /bin/bash: chmod +x run.sh lets that run it, --run-path Python");
  CHECK(why_not_python("./a.out",
                       "\x7f"
                       "ELF\2\1") == "not executable; chmod +x ./a.out makes it so");
  CHECK(why_not_python("model.pt", std::string(8, '\0')) == "neither executable nor Python: it holds binary data");
  CHECK(why_not_a_program("x.py").empty());
  CHECK(why_not_a_program("n.ipynb") ==
        "a notebook, not a program: jupyter nbconvert --to script n.ipynb makes one of it; %%taas runs cells on many "
        "ranks");
}

}  // namespace python_file_test
