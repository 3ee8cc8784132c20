"""Ways to name a program, options and variables of the interpreter: the same, with light modules in place of torch."""

import subprocess
import sys
import zipfile

import pytest

from waiting import DEADLINE_SECONDS

MODULES = "multiprocessing.pool,decimal,ctypes,concurrent.futures"
LOOK = """
import os, sys
print(__name__, __file__, __package__, type(__spec__).__name__, getattr(__spec__, "name", None),
      type(__loader__).__name__, __doc__)
print(sys.argv, sys.orig_argv, sys.path, sys.flags, sys.warnoptions, sys._xoptions)
print(sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering, sys.stdout.write_through, sys.pycache_prefix)
print(sys.executable, sys.prefix, "site" in sys.modules,
      hash("x") if os.environ.get("PYTHONHASHSEED", "random") != "random" else "")
print(open("/proc/self/cmdline").read())
"""
PYTHON = sys.executable


@pytest.fixture
def both(machine):
    """Runs a command line without and with preloading, demands that it is the same, and returns what it printed."""

    def run(*words, env=None, preloaded=True, cwd=None, text=None, code=0):
        runs = [
            machine.launch("--preload", mode, "--nproc-per-node", 1, *words, env=env, cwd=cwd, text=text)
            for mode in ("none", MODULES)
        ]
        assert [run.code for run in runs] == [code, code], runs[0].console + runs[1].console
        assert [run.preloaded() for run in runs] == [[False], [preloaded]], runs[1].console
        assert runs[1].output() == runs[0].output()
        return runs[1].output()

    return run


@pytest.fixture
def look(machine):
    script = machine.folder / "look.py"
    script.write_text('"""Looks."""\n' + LOOK)
    return script


@pytest.mark.gate
def test_script(both, look):
    assert "__main__" in both(look, "a", "")[0]


def test_script_by_a_relative_path_with_dots_and_by_a_link(both, look, machine):
    (machine.folder / "other").mkdir()
    (machine.folder / "other" / "link.py").symlink_to(look)
    both("other/../look.py")
    assert str(machine.folder) in both("./other/link.py")[0]


def test_file_that_is_not_executable_and_has_no_suffix(both, look):
    plain = look.with_suffix("")
    plain.write_text(look.read_text())
    both("look")


@pytest.mark.gate
def test_module(both, look, machine):
    package = machine.folder / "parts"
    package.mkdir()
    (package / "__init__.py").write_text("print('package', __name__)\n")
    (package / "helper.py").write_text("value = 3\n")
    (package / "run.py").write_text("from .helper import value\nprint(value)\n" + LOOK)
    (package / "__main__.py").write_text("from . import helper\n" + LOOK)
    assert "parts.run" in both("-m", "parts.run", "x")[0]
    assert "parts.__main__" in both("-m", "parts")[0]


def test_module_that_is_not_there(both):
    assert "No module named absent" in both("-m", "absent", code=1)[1]


def test_folder_and_archive(both, machine):
    folder = machine.folder / "program"
    folder.mkdir()
    (folder / "__main__.py").write_text("import beside\n" + LOOK)
    (folder / "beside.py").write_text("print('beside', __file__)\n")
    with zipfile.ZipFile(machine.folder / "program.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    assert "beside" in both(PYTHON, "program", "word")[0]
    assert "program.zip" in both(PYTHON, "-u", "program.zip", "word")[0]


@pytest.mark.gate
def test_text(both):
    both(PYTHON, "-u", "-c", "import sys; print(sys.argv, sys.path, sys.orig_argv, __name__)", "word")


@pytest.mark.parametrize(
    "options",
    [
        ["-W", "error", "-Wdefault::ImportWarning"],
        pytest.param(["-X", "dev"], marks=pytest.mark.gate),
        ["-X", "utf8", "-bb"],
        pytest.param(["-OO"], marks=pytest.mark.gate),
        ["-s", "-B"],
        ["-P"],
        ["-X", "faulthandler", "-X", "own=3"],
        ["-um"],
        ["-q", "-R"],
    ],
)
def test_options_of_the_interpreter(both, look, options):
    both(PYTHON, *options, "look" if "-um" in options else look, "word")


@pytest.mark.parametrize("options", [["-E"], pytest.param(["-I"], marks=pytest.mark.gate), ["-S"]])
def test_options_that_keep_the_hook_out_are_not_preloaded(both, look, options):
    both(PYTHON, *options, look, preloaded=False)


def test_what_python_tells_of_its_imports_is_told_by_each_rank(machine, look):
    run = machine.launch("--preload", MODULES, "--nproc-per-node", 1, PYTHON, "-X", "importtime", look)
    assert run.preloaded() == [False] and "import time:" in run.output()[1]


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({"PYTHONHASHSEED": "7"}, marks=pytest.mark.gate),
        {"PYTHONWARNINGS": "error,default::DeprecationWarning"},
        {"PYTHONDEVMODE": "1"},
        {"PYTHONUTF8": "1"},
        {"PYTHONIOENCODING": "latin-1:replace"},
        {"PYTHONOPTIMIZE": "2"},
        {"PYTHONSAFEPATH": "1"},
        {"PYTHONNOUSERSITE": "1"},
        {"PYTHONPATH": "/tmp:relative::"},
        {"PYTHONPATH": ""},
        {"PYTHONFAULTHANDLER": "1"},
        {"PYTHONPYCACHEPREFIX": "/tmp/cache"},
        {"PYTHONMALLOC": "malloc"},
        pytest.param({"LC_ALL": "C"}, marks=pytest.mark.gate),
        {"LC_ALL": "C.UTF-8"},
        {"PYTHONCOERCECLOCALE": "0", "LC_ALL": "POSIX"},
    ],
    ids=lambda variables: "-".join(f"{name}={value}" for name, value in variables.items()).replace("/", "_"),
)
def test_variables_of_the_interpreter(both, look, variables):
    both(look, env=variables)


@pytest.mark.gate
def test_names_and_values_that_are_no_text(machine):
    script = machine.folder / "bytes.py"
    script.write_text("import os\nprint(os.environb[b'ODD'], os.environb.get(b'EMPTY'))\n")
    run = machine.launch("--preload", MODULES, "--nproc-per-node", 1, script, env={"ODD": "a=\udcff\nb", "EMPTY": ""})
    assert run.output()[0] == "b'a=\\xff\\nb' b''\n"
    assert run.preloaded() == [True]


@pytest.mark.gate
def test_an_environment_that_no_program_could_set(machine):
    """Without a name, without "=", and one name twice: a process can be started with it all the same."""
    script = machine.folder / "odd.py"
    script.write_text(
        "import os, subprocess\n"
        "print([item for item in os.environb.items() if item[0] in (b'', b'ODD', b'TWICE')])\n"
        "os.environ['ADDED'] = 'yes'\n"
        "entries = subprocess.run(['cat', '/proc/self/environ'], capture_output=True).stdout.split(b'\\0')\n"
        "print([entry for entry in entries if entry.startswith((b'=', b'ODD', b'TWICE', b'ADDED'))])\n"
    )
    runs = [
        machine.launch_with_entries(
            ["=nameless", "ODD", "TWICE=1", "TWICE=2"], "--preload", mode, "--nproc-per-node", 1, script
        )
        for mode in ("none", MODULES)
    ]
    assert [run.code for run in runs] == [0, 0], runs[1].console
    assert runs[1].preloaded() == [True]
    assert runs[1].output() == runs[0].output()
    assert "b'=nameless'" in runs[0].output()[0]


@pytest.mark.gate
def test_code_at_the_start_of_python_runs_in_each_rank(both, look, machine):
    """It may look at the rank's variables or open files of its own: no rank is preloaded then."""
    custom = machine.folder / "site" / "sitecustomize.py"
    custom.parent.mkdir()
    custom.write_text("import os, sys\nsys.customised = os.environ['RANK']\nprint('customised', __name__)\n")
    look.write_text(look.read_text() + "\nimport sitecustomize\nprint(sys.customised, sitecustomize.__spec__.origin)\n")
    out, _ = both(look, env={"PYTHONPATH": str(custom.parent)}, preloaded=False)
    assert out.count("customised sitecustomize") == 1
    custom.write_text('"""Nothing."""\n# to be done\n')
    look.write_text(LOOK + "import sitecustomize\nprint(sitecustomize.__doc__)\n")
    assert "Nothing." in both(look, env={"PYTHONPATH": str(custom.parent)})[0]


@pytest.mark.gate
@pytest.mark.parametrize("folder", ["venv", "venv-with-code", "venv-with-known-code"])
def test_code_in_path_files(both, look, machine, folder):
    environment = machine.folder / folder
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=DEADLINE_SECONDS)
    packages = next(environment.glob("lib/python3*/site-packages"))
    (packages / "plain.pth").write_text(f"{machine.folder}\n# import nothing\n")
    if folder == "venv-with-code":
        (packages / "tracer.pth").write_text("import os; os.environ['TRACED'] = os.environ.get('RANK', 'nobody')\n")
    if folder == "venv-with-known-code":
        (packages / "__editable___own_finder.py").write_text("def install():\n    pass\n")
        (packages / "own.pth").write_text("import __editable___own_finder; __editable___own_finder.install()\n")
    look.write_text(LOOK + "print(os.environ.get('TRACED'))\n")
    both(environment / "bin" / "python", look, preloaded=folder != "venv-with-code")


@pytest.mark.gate
def test_a_python_that_is_a_script(both, look, machine):
    wrapper = machine.folder / "python3"
    wrapper.write_text(f'#!/bin/sh\nSEEN_BY_WRAPPER=$RANK exec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    look.write_text("import os\nprint(os.environ['SEEN_BY_WRAPPER'])\n")
    assert both(wrapper, look, preloaded=False)[0] == "0\n"


@pytest.mark.gate
def test_broken_program(both, look):
    look.write_text("x = (1,\n  ]\n")
    assert "SyntaxError" in both(look, code=1)[1]
    look.write_bytes(b"# -*- coding: latin-1 -*-\nprint('\xe4')\n")
    both(look)
    look.write_bytes(b"print('\xe4')\n")
    both(look, code=1)


@pytest.mark.gate
def test_a_module_beside_the_program_comes_before_others(both, look, machine):
    (machine.folder / "decimal.py").write_text("print('my own decimal')\n")
    look.write_text("import decimal\nprint(decimal.__file__)\n")
    assert both(look)[0].startswith("my own decimal\n")


@pytest.mark.gate
def test_local_rank_in_the_arguments(machine, look):
    runs = [
        machine.launch("--preload", mode, "--nproc-per-node", 2, look, "--rank=${local_rank}", "end")
        for mode in ("none", MODULES)
    ]
    assert runs[1].preloaded() == [True, True]
    for rank in range(2):
        lines = [run.output(rank)[0].splitlines()[:-1] for run in runs]  # the last is the kernel's view
        assert lines[0] == lines[1]
        assert f"--rank={rank}" in lines[1][1]


@pytest.mark.parametrize("way", [pytest.param("pipe", marks=pytest.mark.gate), "file", "nothing"])
def test_standard_input_of_rank_0(machine, way):
    script = machine.folder / "reads.py"
    script.write_text(
        "import sys\ns = sys.stdin\n"
        "print(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.seekable())\n"
        "print(repr(s.readline()), repr(s.read()), type(s.buffer.raw))\n"
    )
    (machine.folder / "text").write_text("a line\nanother")
    given = {"pipe": {"text": "a line\nanother"}, "file": {"stdin": open(machine.folder / "text")}, "nothing": {}}[way]
    outputs = []
    for mode in ("none", MODULES):
        if way == "file":
            given["stdin"].seek(0)
        run = machine.launch("--preload", mode, "--nproc-per-node", 2, script, **given)
        assert run.code == 0, run.console
        outputs.append((run.output(0), run.output(1)))
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.gate), "forkserver", "fork"])
def test_processes_of_the_program_find_its_functions(both, machine, method):
    script = machine.folder / "pool.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "class Work:\n    def __init__(self, x):\n        self.x = x\n"
        "def work(item):\n    return item.x * 3, __name__, Work.__module__, sys.argv\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context('{method}').Pool(2) as pool:\n"
        "        print(pool.map(work, [Work(1), Work(2)]))\n"
    )
    assert "(3, " in both(script, "word")[0]


@pytest.mark.gate
def test_interactive_after_the_program(machine, look):
    """-i keeps Python reading: it is not preloaded, and works as ever."""
    run = machine.launch("--preload", MODULES, "--nproc-per-node", 1, PYTHON, "-i", look, text="print(1 + 1)\n")
    assert run.code == 0 and "2" in run.output()[0]
