"""A preloaded interpreter through a run's life: restarts, stops, kills, limits, and what it falls back from."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest

from conftest import TAAS_RUN
from waiting import DEADLINE_SECONDS, is_gone, wait_until

MODULES = "multiprocessing,decimal"
RESTARTS = ("--monitor-interval", 0, "--max-restarts")
PRELOADER = b"TAAS_PRELOAD="


@pytest.fixture
def script(machine):
    def write(text):
        path = machine.folder / "script.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def started(machine):
    """Runs taas-run in the background, and ends it whatever happens."""
    processes = []

    def start(*words):
        process = subprocess.Popen(
            [TAAS_RUN, *map(str, words)],
            cwd=machine.folder,
            env=machine.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def family(pid) -> list[int]:
    children = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has just ended
            children += map(int, task.read_text().split())
    return [pid] + [member for child in children for member in family(child)]


def preloader(pid) -> int | None:
    """A launcher's waiting interpreter: ranks come out of it, so they share its first environment but lead sessions."""
    for member in family(pid):
        try:
            command = pathlib.Path(f"/proc/{member}/environ").read_bytes()
            descriptors = os.listdir(f"/proc/{member}/fd")
            if PRELOADER in command and b"serve" in command and "3" in descriptors and os.getsid(member) == member:
                if os.readlink(f"/proc/{member}/fd/1").startswith("/memfd:"):
                    return member
        except OSError:  # it has just ended
            continue
    return None


@pytest.mark.gate
def test_ranks_are_children_of_the_launcher_as_others_are(machine, script):
    look = script(
        "import ctypes, os\n"
        "death = ctypes.c_int()\n"
        "ctypes.CDLL(None).prctl(2, ctypes.byref(death), 0, 0, 0)\n"
        "print(death.value, open(f'/proc/{os.getppid()}/comm').read(), os.getsid(0) == os.getpid())\n"
    )
    runs = [machine.launch("--preload", mode, "--nproc-per-node", 2, look) for mode in ("none", MODULES)]
    assert runs[1].preloaded() == [True, True]
    assert runs[1].output(1) == runs[0].output(1) == ("9 taas-run\n True\n", "")


def test_the_kernel_takes_preloaded_ranks_before_their_launcher(machine, script):
    look = script(
        "import os\n"
        "score = lambda pid: int(open(f'/proc/{pid}/oom_score_adj').read())\n"
        "print(score(os.getpid()) == min(1000, score(os.getppid()) + 100))\n"
    )
    runs = [machine.launch("--preload", mode, "--nproc-per-node", 1, look) for mode in ("none", MODULES)]
    assert runs[1].preloaded() == [True]
    assert runs[1].output() == runs[0].output() == ("True\n", "")


@pytest.mark.gate
def test_after_a_failure_ranks_come_from_the_warm_interpreter(machine, script):
    failing = script("import os, sys\nsys.exit(3 if os.environ['TORCHELASTIC_RESTART_COUNT'] < '2' else 0)\n")
    run = machine.launch("--preload", MODULES, "--nproc-per-node", 3, *RESTARTS, 2, failing)
    assert run.code == 0, run.console
    assert run.preloaded() == [True] * 9


@pytest.mark.gate
def test_a_program_that_changed_between_generations_runs_as_it_is_now(machine, script):
    path = script("import sys\nopen(__file__, 'w').write('print(\"second\")')\nsys.exit(1)\n")
    run = machine.launch("--preload", MODULES, "--nproc-per-node", 1, *RESTARTS, 1, path)
    assert run.output(generation=1)[0] == "second\n"


@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=pytest.mark.gate), signal.SIGSTOP])
def test_an_interpreter_that_is_gone_or_does_not_answer_is_missed_once(started, script, machine, number):
    path = script(
        "import os, sys, time\n"
        "open('up', 'w').close()\n"
        "while not os.path.exists('go'):\n    time.sleep(0.01)\n"
        "sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] < '2')\n"
    )
    process = started("--preload", MODULES, "--nproc-per-node", 1, *RESTARTS, 2, path)
    wait_until((machine.folder / "up").exists, "a rank is up")
    os.kill(preloader(process.pid), number)
    (machine.folder / "go").touch()
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, err
    assert err.count("not preloaded") == 1, err


SLOW = "import os, time\nopen('importing', 'w').close()\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\n"


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.gate)])
def test_a_stop_while_modules_are_imported_waits_for_nothing(started, script, machine, number):
    (machine.folder / "slow.py").write_text(SLOW)
    process = started("--preload", "slow", "--nproc-per-node", 2, script("import slow\n"))
    wait_until((machine.folder / "importing").exists, "the import has begun")
    process.send_signal(number)
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + number


@pytest.mark.parametrize("victim", ["launcher", pytest.param("agent", marks=pytest.mark.gate)])
def test_nothing_is_left_when_the_launcher_is_killed(started, script, machine, victim):
    process = started(
        "--preload", MODULES, "--nproc-per-node", 2, script("open('up', 'w').close()\nimport time\ntime.sleep(600)\n")
    )
    wait_until(lambda: (machine.folder / "up").exists() and preloader(process.pid), "a rank is up")
    members = family(process.pid)
    os.kill(members[0] if victim == "launcher" else members[1], signal.SIGKILL)
    process.wait(timeout=DEADLINE_SECONDS)
    wait_until(lambda: all(map(is_gone, members)), "all are gone")


def test_the_end_of_a_run_takes_the_interpreter_along(started, script, machine):
    process = started(
        "--preload",
        MODULES,
        "--nproc-per-node",
        1,
        script("import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\n"),
    )
    waiting = wait_until(lambda: preloader(process.pid), "there is an interpreter")
    (machine.folder / "go").touch()
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0 and is_gone(waiting)


@pytest.mark.gate
def test_limits_and_protected_folders_hold_for_preloaded_ranks(machine, script):
    (machine.folder / "kept").mkdir()
    path = script(
        "import os, resource\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE))\n"
        "try:\n    open(f'kept/{os.environ[\"RANK\"]}', 'w')\n"
        "except OSError as error:\n    print(type(error).__name__)\n"
    )
    runs = [
        machine.launch("--preload", mode, "--nproc-per-node", 2, "--protect", "kept", path)
        for mode in ("none", MODULES)
    ]
    if "no Landlock" in runs[0].console:
        pytest.skip("no Landlock here")
    assert runs[1].preloaded() == [True, True]
    assert [runs[1].output(rank) for rank in range(2)] == [runs[0].output(rank) for rank in range(2)]
    assert "PermissionError" in runs[1].output(1)[0] and "PermissionError" not in runs[1].output(0)[0]


def module(machine, text):
    (machine.folder / "heavy.py").write_text(text)
    return "heavy"


@pytest.mark.parametrize(
    "text, reason",
    [
        pytest.param(
            "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n",
            "started 1 thread",
            marks=pytest.mark.gate,
        ),
        pytest.param(
            "import os\nrank = os.environ.get('RANK', '0')\n",
            "heavy reads RANK when it is imported",
            marks=pytest.mark.gate,
        ),
        pytest.param(
            "raise ValueError('no\\nluck')\n", "heavy cannot be imported: ValueError: no luck", marks=pytest.mark.gate
        ),
        ("import absent\n", "heavy cannot be imported: ModuleNotFoundError: No module named 'absent'"),
        ("import os\nos._exit(1)\n", "ended before it was ready"),
        pytest.param("import os\nos.kill(os.getpid(), 9)\n", "ended before it was ready", marks=pytest.mark.gate),
        pytest.param(
            "import uuid\nrun = uuid.uuid4()\n", "heavy draws at random when it is imported", marks=pytest.mark.gate
        ),
        ("from os import urandom\nsalt = urandom(3)\n", "heavy draws at random when it is imported"),
        ("import random\nsalt = random.Random().random()\n", "heavy draws at random when it is imported"),
        (
            "import sys, types\n"
            "sys.modules['torch'] = types.SimpleNamespace(cuda=types.SimpleNamespace(is_initialized=lambda: True))\n",
            "initialised CUDA",
        ),
    ],
)
def test_falls_back_with_one_line(machine, script, text, reason):
    run = machine.launch("--preload", module(machine, text), "--nproc-per-node", 2, script("print('ran')\n"))
    assert run.code == 0, run.console
    assert run.preloaded() == [False, False]
    lines = [line for line in run.console.splitlines() if "not preloaded" in line]
    assert len(lines) == 1 and reason in lines[0], run.console
    assert run.output(1) == ("ran\n", "")


@pytest.mark.parametrize(
    "program, reason",
    [
        pytest.param(
            "import os\nos.environ['OMP_NUM_THREADS'] = '3'\nimport decimal\n",
            "the program sets OMP_NUM_THREADS itself",
            marks=pytest.mark.gate,
        ),
        ('import os\nos.environ.setdefault("TORCH_LOGS", "+dynamo")\n', "the program sets TORCH_LOGS itself"),
    ],
)
def test_a_program_that_sets_what_is_read_at_import(machine, script, program, reason):
    run = machine.launch("--preload", MODULES, "--nproc-per-node", 1, script(program))
    assert run.code == 0 and run.preloaded() == [False]
    assert run.console.count(reason) == 1, run.console


@pytest.mark.parametrize(
    "reading",
    [
        pytest.param("os.environ.get('HEAVY', 'unset')", marks=pytest.mark.gate),
        "os.getenvb(b'HEAVY', b'unset').decode()",
        "os.environ['HEAVY'] if 'HEAVY' in os.environ else 'unset'",
    ],
)
def test_a_program_that_sets_what_a_module_reads_at_import(machine, script, reading):
    heavy = module(machine, f"import os\nvalue = {reading}\n")
    path = script("import os\nos.environ.update({\n    'HEAVY': 'set',\n})\nimport heavy\nprint(heavy.value)\n")
    run = machine.launch("--preload", heavy, "--nproc-per-node", 2, path)
    assert run.code == 0 and run.preloaded() == [False, False]
    assert run.console.count("the program sets HEAVY itself, which heavy reads when it is imported") == 1, run.console
    assert run.output(1) == ("set\n", "")


def test_a_program_may_set_what_no_module_asks_for(machine, script):
    """Nor does a module ask for a variable that goes through all that there are."""
    heavy = module(
        machine, "import os\nfound = [value for name, value in os.environ.items() if name.startswith('X_')]\n"
    )
    path = script("import os\nos.environ['LATER'] = 'set'\nimport heavy\nprint(os.environ['LATER'])\n")
    run = machine.launch("--preload", heavy, "--nproc-per-node", 2, path, env={"LATER": "given"})
    assert run.preloaded() == [True, True], run.console
    assert run.output(1) == ("set\n", "")


@pytest.mark.gate
def test_a_program_without_torch_costs_nothing_by_itself(machine, script):
    run = machine.launch("--nproc-per-node", 2, script("print('plain')\n"))
    assert run.preloaded() == [False, False]
    assert "preload" not in run.console


@pytest.mark.gate
def test_a_program_that_does_without_torch_is_told_nothing(machine, script):
    (machine.folder / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    program = script("try:\n    import torch\nexcept ImportError:\n    print('without')\n")
    run = machine.launch("--nproc-per-node", 2, program)
    assert (run.code, run.preloaded()) == (0, [False, False])
    assert run.output(1) == ("without\n", "") and "preload" not in run.console, run.console
    asked = machine.launch("--preload", "torch", "--nproc-per-node", 2, program)
    assert asked.console.count("not preloaded: there is no module torch") == 1, asked.console


@pytest.mark.gate
def test_a_program_that_is_not_python(machine):
    run = machine.launch("--nproc-per-node", 2, "/bin/true")
    assert run.code == 0 and "preload" not in run.console
    asked = machine.launch("--preload", "torch", "--nproc-per-node", 2, "/bin/true")
    assert asked.code == 0 and asked.console.count("not preloaded") == 1


@pytest.mark.gate
def test_a_folder_in_front_of_what_was_preloaded_is_told(machine, script):
    heavy = module(machine, "import colorsys\n")
    (machine.folder / "lib").mkdir()
    (machine.folder / "lib" / "colorsys.py").write_text("print('my own')\n")
    program = script("import sys\nsys.path.insert(0, 'lib')\nimport heavy, colorsys\nprint(colorsys.__file__)\n")
    run = machine.launch("--preload", heavy, "--nproc-per-node", 2, program)
    out, err = run.output(1)
    assert run.preloaded() == [True, True] and "lib/colorsys.py" in out, out
    assert err.count("\n") == 1 and "colorsys was preloaded from another folder" in err, err


@pytest.mark.gate
def test_pytest_runs_tests_in_preloaded_ranks(machine):
    """Its finder has that of Python as a method of its own."""
    (machine.folder / "test_it.py").write_text(
        "import decimal\n\n\ndef test_it():\n    assert decimal.Decimal(1) == 2\n"
    )
    run = machine.launch(
        *("--preload", MODULES, "--nproc-per-node", 1, "-m", "pytest", "-p", "no:cacheprovider", "test_it.py"),
        env={"PYTEST_ADDOPTS": ""},
    )
    assert (run.code, run.preloaded()) == (1, [True]) and "assert Decimal('1') == 2" in run.output()[0], run.console


@pytest.mark.gate
def test_what_modules_write_is_written_by_each_rank(machine, script):
    heavy = module(machine, "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\n")
    run = machine.launch(
        "--preload", heavy, "--nproc-per-node", 2, script("print('first')\nimport heavy\nprint('then')\n")
    )
    assert run.preloaded() == [True, True]
    assert run.output(0) == run.output(1) == ("first\nto stdout\nthen\n", "to stderr\n")


@pytest.mark.gate
def test_generators_of_modules_that_have_no_seed_draw_something_else_in_each_rank(machine, script):
    heavy = module(
        machine,
        "import random\nown, fixed = random.Random(), random.Random(5)\nlater = random.Random()\nlater.seed(6)\n",
    )
    look = script(
        "import heavy, os, random\nprint(heavy.own.random())\nprint(heavy.fixed.random(), heavy.later.random())\n"
        "print(os.urandom, random._urandom is os.urandom, random.Random.seed.__module__)\n"
    )
    run = machine.launch("--preload", heavy, "--nproc-per-node", 3, look)
    assert run.preloaded() == [True] * 3, run.console
    lines = [run.output(rank)[0].splitlines() for rank in range(3)]
    own, fixed, functions = (set(same) for same in zip(*lines, strict=True))
    assert len(own) == 3 and len(fixed) == 1
    assert functions == {"<built-in function urandom> True random"}


def test_modules_may_write_more_than_a_pipe_holds(machine, script):
    heavy = module(machine, "import sys\nfor stream in (sys.stdout, sys.stderr):\n    stream.write('x' * 300000)\n")
    run = machine.launch("--preload", heavy, "--nproc-per-node", 2, script("import heavy\nprint('then')\n"))
    assert run.code == 0, run.console
    assert run.preloaded() == [True, True]
    assert run.output(1) == ("x" * 300000 + "then\n", "x" * 300000)


@pytest.mark.parametrize("value", ["", pytest.param("a b", marks=pytest.mark.gate), "torch,", ".x", "no-such.name!"])
def test_a_wrong_value_is_refused_before_anything_starts(machine, script, value):
    result = subprocess.run(
        [TAAS_RUN, f"--preload={value}", "x.py"],
        cwd=machine.folder,
        capture_output=True,
        text=True,
        env=machine.environment,
        stdin=subprocess.DEVNULL,
        timeout=DEADLINE_SECONDS,
    )
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and "--preload" in result.stderr
    assert not (machine.folder / "taas-runs").exists()


@pytest.mark.gate
def test_the_dry_run_and_the_environment_have_it(machine, script):
    path = script("import torch\n")

    def dry(*words, env=None):
        return subprocess.run(
            [TAAS_RUN, "--dry-run", "--nproc-per-node", "2", *words, path],
            cwd=machine.folder,
            capture_output=True,
            text=True,
            env={**machine.environment, **(env or {})},
            check=True,
            timeout=DEADLINE_SECONDS,
        ).stdout

    assert "preload  torch\n" in dry()
    assert "preload  none (--preload none)\n" in dry("--preload", "none")
    assert json.loads(dry("--json", "--preload", "torch,decimal"))["preload"] == ["torch", "decimal"]


@pytest.mark.parametrize("place", ["link", "pipe", "none"])
def test_what_a_rank_has_noticed_is_written_to_no_other_file(tmp_path, monkeypatch, place):
    """Its path is known to all ranks."""
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2] / "lib/python/preload"))
    from taas_preload.training_facts import TrainingFacts

    victim, path = tmp_path / "victim", tmp_path / "error.json.facts"
    victim.write_text("weeks of work")
    if place == "link":
        path.symlink_to(victim)
    elif place == "pipe":
        os.mkfifo(path)
    facts = TrainingFacts()
    facts.shuffled("loader", "digest")
    facts.write(str(path))
    assert torch and victim.read_text() == "weeks of work"
    assert path.is_file() == (place != "pipe")
    assert place != "none" or json.loads(path.read_text())["shuffled"] == [{"loader": "loader", "digest": "digest"}]
