"""Distributed cells in a real kernel: what goes in, what comes back, and where errors point."""

import json
import pathlib
import re

import pytest

PROGRAMS = pathlib.Path(__file__).parents[1] / "frameworks" / "programs"


@pytest.mark.gate
def test_the_pragma_cell_runs_on_ranks_with_what_earlier_cells_have_defined(kernel):
    kernel.run(
        "import os, json\nscale = 3\ndef twice(n):\n    return 2 * n * scale\nclass Box:\n    def go(self):\n"
        "        return twice(self.n)\nbox = Box()\nbox.n = 5"
    ).check()
    done = kernel.run(
        '#!g2.8\n#pragma taas --gpus 2\nprint(json.dumps([os.environ["RANK"], os.environ["WORLD_SIZE"], box.go()]))'
    ).check()
    assert json.loads(done.stream()) == ["0", "2", 30]


def test_a_cell_that_sets_what_torch_reads_at_import_does_not_get_a_torch_that_has_read_it(kernel, project):
    def preloaded(setting):
        kernel.run(f"%%taas --gpus 2\nimport os\n{setting}\nimport torch").check()
        journal = (project / "taas-runs" / "latest" / "journal.jsonl").read_text().splitlines()
        return [event["preloaded"] for event in map(json.loads, journal) if event.get("event") == "rank_spawned"]

    assert preloaded("os.environ['LATER'] = '3'") == [True, True]
    assert preloaded("os.environ['OMP_NUM_THREADS'] = '3'") == [False, False]


def test_ranks_are_fresh_processes_and_the_cell_is_a_file_of_theirs(kernel):
    kernel.run("import os, sys\nunread = 1").check()
    done = kernel.run("""#pragma taas --gpus 2 --pull facts
import inspect
def here(): pass
facts = dict(name=__name__, ps1=hasattr(sys, "ps1"), ipython="IPython" in sys.modules, file=open(__file__).read(),
             source=inspect.getsource(here), unread="unread" in globals(), group=os.getpgrp() == os.getpid(),
             argv=len(sys.argv))
""").check()
    assert done.error is None
    facts = eval(kernel.run("facts").check().result)
    assert facts["file"].startswith("#pragma taas --gpus 2")
    assert facts["source"] == "def here(): pass\n"
    del facts["file"], facts["source"]
    assert facts == dict(name="__main__", ps1=False, ipython=False, unread=False, group=True, argv=1)


def test_a_function_sees_the_cells_own_value_of_a_name(kernel):
    """As in a notebook, where both are the same global variable."""
    kernel.run("scale = 3\ndef scaled(n):\n    return n * scale").check()
    assert kernel.run("%%taas --gpus 2\nscale = 10\nscaled(2)").check().result == "20"


@pytest.mark.gate
def test_the_last_expression_is_the_cells_result(kernel):
    assert kernel.run("%%taas --gpus 2\nx = 1\nx + 1").check().result == "2"
    assert kernel.run("%%taas --gpus 2\n1;").check().result is None
    assert kernel.run("%%taas --gpus 2\nNone").check().result is None


def test_values_of_rank_0_come_back_with_the_notebooks_own_classes(kernel):
    kernel.run("import torch, os\nclass Net:\n    pass\n").check()
    kernel.run(
        '%%taas --gpus 2 --pull net,weights,loss\nnet = Net(); net.rank = os.environ["RANK"]\n'
        "weights = torch.arange(5.0); loss = [weights[1:3], 0.5]"
    ).check()
    pulled = kernel.run("isinstance(net, Net), net.rank, weights.tolist(), loss[0].tolist(), loss[1]").check().result
    assert pulled == "(True, '0', [0.0, 1.0, 2.0, 3.0, 4.0], [1.0, 2.0], 0.5)"


@pytest.mark.gate
def test_functions_and_classes_that_the_cell_defines_anew_come_back(kernel):
    kernel.run("def f():\n    return 3\nclass Net:\n    kind = 'old'\nkept = f, Net").check()
    kernel.run("""%%taas --gpus 2 --pull f,Net,net,before
before = [f, Net, Net()]
def f():
    return 200
class Net:
    kind = 'new'
net = Net()
""").check()
    assert kernel.run("f(), Net.kind, net.kind, type(net) is Net").check().result == "(200, 'new', 'new', True)"
    assert (
        kernel.run("before[0] is kept[0], before[1] is kept[1], type(before[2]) is kept[1]").check().result
        == "(True, True, True)"
    )


def test_what_the_cell_has_changed_of_a_function_or_class_comes_back_when_it_is_asked_for(kernel):
    kernel.run(
        "def count():\n    count.calls += 1\ncount.calls = 0\nclass Net:\n    scale = 1\nkept, net = Net, Net()"
    ).check()
    kernel.run("%%taas --gpus 2 --pull count,Net\ncount()\nNet.scale = 5").check()
    assert kernel.run("count.calls, Net.scale, net.scale, Net is kept").check().result == "(1, 5, 5, True)"


def test_what_cannot_come_back_is_named(kernel):
    done = kernel.run(
        "%%taas --gpus 2 --pull a,nothing,file\na = 1\nif a > 1:\n    nothing = 0\nfile = open('/dev/null')"
    )
    assert done.error["ename"] == "PullError"
    assert "--pull nothing: rank 0 has no such variable" in done.traceback
    assert "--pull file (TextIOWrapper): cannot be brought back: an open file" in done.traceback
    assert kernel.run("a").check().result == "1"


def test_a_name_that_the_cell_never_has_is_refused_before_anything_is_started(kernel, project):
    kernel.run("unread = 1\ndef train():\n    global loss\n    loss = 0.5").check()
    for name in ("los", "unread", "inner"):
        done = kernel.run(f"%%taas --gpus 2 --pull {name}\ndef step():\n    inner = 1\ntrain()")
        assert done.error["evalue"] == (
            f"--pull {name}: the cell has no such variable: it neither sets it nor reads one of the notebook's"
        )
    assert not (project / "taas-runs").exists()
    kernel.run("%%taas --gpus 2 --pull loss\ntrain()").check()
    assert kernel.run("loss").check().result == "0.5"


@pytest.mark.gate
def test_the_first_failing_rank_raises_one_exception_that_points_at_the_cells_line(kernel):
    kernel.run("import os, time\ndef fail(n):\n    raise ValueError(f'bad {n}')").check()
    done = kernel.run('#pragma taas --gpus 2\nif os.environ["RANK"] == "1":\n    fail(7)\ntime.sleep(600)')
    assert done.error["ename"] == "RankFailed"
    assert done.error["evalue"] == "rank 1 of 2: ValueError: bad 7 (line 3 of the cell)"
    calls = re.sub(r"\n +[~^]+(?=\n)", "", done.traceback)  # Python 3.13 marks the place in a line
    assert re.search(
        r"Cell In\[\d+\], line 3, in <module>\n    fail\(7\)\n  Cell In\[\d+\], line 3, in fail\n    raise ValueError",
        calls,
    )
    assert "taas/notebook" not in done.traceback
    assert "Traceback" not in done.stream("stderr"), "the exception says it once"


def test_tracebacks_name_cells_by_the_numbers_of_their_prompts(kernel):
    defined = kernel.run("import threading\ndef fail(n):\n    raise ValueError(f'bad {n}')").check().count
    done = kernel.run("#pragma taas --gpus 1\nfail(1)")
    assert re.findall(r"Cell In\[(\d+)\], line \d+, in (\S+)", done.traceback) == [
        (str(done.count), "<module>"),
        (str(defined), "fail"),
    ]
    plain = kernel.run("fail(1)")
    assert f"In[{plain.count}]" in plain.traceback and f"In[{defined}]" in plain.traceback
    again = kernel.run(
        "#pragma taas --gpus 1\nraised = []\ndef run():\n    try:\n        fail(2)\n    except ValueError as error:\n"
        "        raised.append(error)\nthread = threading.Thread(target=run)\n"
        "thread.start()\nthread.join()\nraise raised[0]"
    )
    assert re.findall(r"Cell In\[(\d+)\], line \d+, in (\S+)", again.traceback) == [
        (str(again.count), "<module>"),
        (str(again.count), "run"),
        (str(defined), "fail"),
    ]


def test_a_pragma_below_a_magic_that_runs_its_cell_is_obeyed(kernel):
    for magic in ("%%time", "%%capture output"):
        done = kernel.run(f"{magic}\n#pragma taas --gpus 1\nimport os\nprint('rank', os.environ.get('RANK'))").check()
        assert "no effect" not in done.stream("stderr")
        assert "rank 0" in done.stream() or magic != "%%time"
    assert "rank 0" in kernel.run("print(output.stdout)").check().stream()


def test_with_the_magic_lines_count_from_the_magic(kernel):
    assert "line 3 of the cell" in kernel.run("%%taas --gpus 2\n\n1 / 0").error["evalue"]


def test_exit_codes_of_the_cell(kernel):
    assert kernel.run("%%taas --gpus 2\nimport sys\nsys.exit(0)").error is None
    assert "exited with code 3" in kernel.run("%%taas --gpus 2\nimport sys\nsys.exit(3)").error["evalue"]


def test_a_syntax_error_starts_nothing(kernel, project):
    assert kernel.run("%%taas --gpus 2\nx = 1 +").error["evalue"] == "line 2 of the cell: 'x = 1 +': invalid syntax"
    assert "'await' outside function" in kernel.run("%%taas --gpus 2\nawait x").error["evalue"]
    advice = "no event loop runs: put the statements into an async function, and call asyncio.run()"
    assert advice in kernel.run("%%taas --gpus 2\nimport asyncio\nawait asyncio.sleep(0)").error["evalue"]
    assert advice not in kernel.run("%%taas --gpus 2\ndef f():\n    await x").error["evalue"]
    assert not (project / "taas-runs").exists()


def test_ipythons_own_lines_are_refused_by_their_number(kernel):
    done = kernel.run("%%taas --gpus 2\nx = 1\n%matplotlib inline")
    assert "line 3 of the cell: '%matplotlib inline': this is for IPython" in done.error["evalue"]
    done = kernel.run("%%taas --gpus 2\nfor i in range(2):\n    files = !ls")
    assert "line 3 of the cell: 'files = !ls': this is for IPython" in done.error["evalue"]


def test_input_says_where_it_belongs(kernel):
    done = kernel.run("%%taas --gpus 1\nname = input('Who? ')")
    assert done.error["evalue"] == (
        "rank 0 of 1: EOFError: ranks have no keyboard: call input() in a cell of its own, "
        "whose variable this cell then reads (line 2 of the cell)"
    )


def test_a_pragma_below_a_comment_is_obeyed_and_below_code_it_says_that_it_is_not(kernel):
    run = "import os\nprint(os.environ.get('RANK'))"
    assert kernel.run(f"# what this does\n\n#pragma taas --gpus 2\n{run}").check().stream() == "0\n"
    assert kernel.run(f"#PRAGMA TAAS --gpus 2\n{run}").check().stream() == "0\n"
    done = kernel.run(f"x = 1\n#pragma taas --gpus 2\n{run}").check()
    assert done.stream() == "None\n"
    assert done.stream("stderr") == (
        "taas: line 2 of the cell: #pragma taas has no effect here: it belongs above the cell's first statement\n"
    )


def test_a_wrong_option_is_one_line(kernel):
    done = kernel.run("%%taas --gpusx 2\n1")
    assert done.error["evalue"] == "--gpusx: no such option; did you mean --gpus?"
    assert done.traceback == done.error["evalue"]
    assert "there are ranks 0 to 1" in kernel.run("%%taas --gpus 2 --ranks 5\n1").error["evalue"]


def test_an_unknown_shape_runs_and_says_what_it_was_taken_for(kernel):
    done = kernel.run("#!z3.2\n#pragma taas --gpus 2\nprint('ran')").check()
    assert done.stream() == "ran\n"
    assert "unknown shape z3.2: taken for nodes with 2 GPUs" in done.stream("stderr")


@pytest.mark.gate
def test_dry_run_starts_nothing(kernel, project):
    kernel.run("x = [1]").check()
    done = kernel.run("%%taas --gpus 2 --dry-run\nprint(x)").check()
    said = done.stream("stderr")
    assert "captured: x (list)" in said and "WORLD_SIZE=2" in said and "--protect" in said
    assert not (project / "taas-runs").exists()


@pytest.mark.gate
def test_status_and_logs_of_the_last_run(kernel):
    kernel.run('%%taas --gpus 2\nimport os\nprint("I am", os.environ["RANK"])').check()
    status = kernel.run("%taas status").check().stream()
    assert "ended with code 0, 2 ranks" in status and "rank 1: ended (code 0)" in status
    assert kernel.run("%taas logs 1").check().stream() == "I am 1\n"
    assert kernel.run("%taas kill").check().stream() == "0 runs told to end\n"
    assert "no such command" in kernel.run("%taas nonsense").error["evalue"]


def test_logs_reads_the_end_of_a_file_alone(kernel, project):
    """And of a line that never ends, such as a progress bar's, no more than a part."""
    kernel.run('%%taas --gpus 2\nprint("begin")').check()
    log = next((project / "taas-runs" / "latest").glob("generation-0/rank-0000.out"))
    with log.open("r+b") as file:
        file.seek(1 << 26)  # of which nothing is stored
        file.write(b"\nlast but one\nlast\n")
    read = "int(open('/proc/self/io').read().split()[1])"
    kernel.run(f"before = {read}").check()
    assert kernel.run("%taas logs 0 2").check().stream() == "last but one\nlast\n"
    kernel.run("%taas logs 0 5").check()
    assert int(kernel.run(f"{read} - before").check().result) < 1 << 22


def test_a_rank_that_is_killed_by_a_signal_without_a_name(kernel):
    kernel.run("import os, time").check()
    done = kernel.run('%%taas --gpus 2\nif os.environ["RANK"] == "1":\n    os.kill(os.getpid(), 40)\ntime.sleep(600)')
    assert (done.error["ename"], done.error["evalue"]) == ("RankFailed", "rank 1 was killed by signal 40")
    assert "rank 1: ended (signal 40)" in kernel.run("%taas status").check().stream()


def test_a_temporary_folder_with_a_long_path(kernel, tmp_path):
    long = tmp_path / ("x" * 90)
    long.mkdir()
    kernel.run(f"import os, tempfile\nfolder, tempfile.tempdir = tempfile.tempdir, {str(long)!r}").check()
    done = kernel.run("%%taas --gpus 2 --pull three\nthree = 3\ndisplay({'text/plain': 'in place'}, raw=True)")
    kernel.run("tempfile.tempdir = folder").check()
    assert "in place" in [output["data"]["text/plain"] for output in done.check().of("display_data")]
    assert kernel.run("three").check().result == "3"


@pytest.mark.gate
def test_ranks_have_what_earlier_cells_have_set(kernel):
    """They began as a fresh Python does, without a word: in float32, and with other numbers."""
    kernel.run("import random, numpy, torch").check()
    look = (
        "print(torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(), torch.get_num_threads(), "
        "torch.backends.cuda.matmul.fp32_precision, torch.rand(1).item(), numpy.random.rand(), random.random())"
    )
    kernel.run("usual = torch.get_num_threads()").check()
    kernel.run("torch.set_default_dtype(torch.float64); torch.set_num_threads(3)").check()
    kernel.run("torch.use_deterministic_algorithms(True)").check()
    kernel.run("torch.backends.cuda.matmul.fp32_precision = 'tf32'").check()
    seeds = "random.seed(1); numpy.random.seed(2); torch.manual_seed(3); torch.rand(5);"
    kernel.run(seeds).check()
    told = kernel.run(look).check().stream()
    kernel.run(seeds).check()
    done = kernel.run(f"%%taas --gpus 2 --ranks 0,1\n{look}").check()
    kernel.run("torch.set_default_dtype(torch.float32); torch.use_deterministic_algorithms(False)").check()
    kernel.run("torch.set_num_threads(usual); torch.backends.cuda.matmul.fp32_precision = 'none'").check()
    assert told.startswith("torch.float64 True 3 tf32 ") and "may differ" not in done.stream("stderr")
    assert re.sub(r"(?m)^\[[01-]+\] ", "", done.stream()) in (told, told + told)


@pytest.mark.parametrize(
    "before",
    [
        "%%taas --gpus 2\nimport random, torch\ntorch.set_num_threads(4)\nrandom.seed(1)",
        "def seeds():\n    import random, torch\n    torch.set_num_threads(4)\n    random.seed(1)",
        "# random.seed(1); torch.set_num_threads(4)",
    ],
    ids=["in ranks", "only defined", "in a comment"],
)
def test_what_no_ordinary_cell_has_set_is_each_ranks_own(new_kernel, before):
    kernel = new_kernel()
    kernel.run("import random, torch").check()
    kernel.run(before).check()
    done = kernel.run("%%taas --gpus 2 --ranks 0,1\nprint(torch.get_num_threads(), random.random())").check()
    threads, numbers = zip(*(line.split(" ")[1:] for line in done.stream().splitlines()))
    assert set(threads) == {"1"} and len(set(numbers)) == 2, done.stream()


@pytest.mark.gate
def test_without_the_extension_it_is_an_ordinary_cell(kernel):
    kernel.run("%unload_ext taas").check()
    assert (
        kernel.run("#!g2.8\n#pragma taas --gpus 2\nimport os\nprint(os.environ.get('RANK'))").check().stream()
        == "None\n"
    )


def test_a_restart_runs_the_cell_again(kernel):
    kernel.run("%load_ext taas\nimport os, time").check()
    done = kernel.run("""%%taas --gpus 2 --max-restarts 1
import torch.distributed as dist
dist.init_process_group("gloo")
print("start", os.environ["TORCHELASTIC_RESTART_COUNT"])
display({"text/plain": "shown"}, raw=True)
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if os.environ["RANK"] == "1":
        raise ValueError("once")
    time.sleep(600)
"done"
""").check()
    assert done.stream() == "start 0\nstart 1\n" and done.result == "'done'"
    assert "rank 1 raised ValueError: once; all ranks start again" in done.stream("stderr")


def test_caches_within_the_project_stay_writable(kernel, project):
    """A notebook in the home folder."""
    (project / ".cache").mkdir()
    kernel.run(f"import os, pathlib\nhome = os.environ['HOME']\nos.environ['HOME'] = {str(project)!r}").check()
    done = kernel.run('%%taas --gpus 2\npathlib.Path(".cache", os.environ["RANK"]).write_text("x")')
    kernel.run("os.environ['HOME'] = home").check()
    assert done.check() and {path.name for path in (project / ".cache").iterdir()} == {"0", "1"}


def test_lightning_trains_in_a_cell(kernel):
    pytest.importorskip("lightning")
    program = (PROGRAMS / "lightning_devices.py").read_text()
    arguments = "devices, nodes = map(int, sys.argv[1:])\n"
    assert arguments in program
    done = kernel.run("#!g2.8\n#pragma taas --gpus 2\n" + program.replace(arguments, "devices, nodes = 2, 1\n"))
    assert "2 ranks on 1 machines, 2 steps\n" in done.check().stream(), done.stream()
