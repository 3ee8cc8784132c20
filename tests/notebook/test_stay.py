"""Ranks that stay between cells: --stay, %%rank, %taas stay and %taas end."""

import json
import os
import re
import signal
import time

import pytest
from kernel import DEADLINE_SECONDS
from taas.notebook.command import landlock_supported

GROUP = """%%taas --gpus 2 --stay
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
weights = torch.ones(2) * (rank + 1)
"""
PLAIN = """%%taas --gpus 2 --stay
import os, time
rank = int(os.environ["RANK"])
"""


@pytest.fixture
def stay(kernel):
    """A kernel in which no ranks stay afterwards either."""
    yield kernel
    kernel.run("%taas kill")


def whose(outcome):
    """The line that says whose the variables are."""
    texts = [output["data"]["text/plain"] for output in outcome.of("display_data")]
    return next(text for text in texts if re.match("ranks? [0-9]", text))


def pid_of(kernel, rank):
    return int(kernel.run(f"%%rank {rank}\nimport os\nos.getpid()").check().result)


def until_there(path):
    """Code for a cell of the notebook that waits for what a rank writes."""
    return f"""import os, time
deadline = time.monotonic() + 180
while not os.path.exists({str(path)!r}):
    assert time.monotonic() < deadline
    time.sleep(0.01)
"""


def test_variables_and_the_process_group_stay(stay):
    begun = stay.run(GROUP).check()
    assert whose(begun) == "ranks 0-1 of `ranks` begin here"
    done = stay.run("%%taas --gpus 2 --stay\ndist.all_reduce(weights)\nweights.tolist()").check()
    assert done.result == "[3.0, 3.0]"
    assert whose(done) == f"ranks 0-1 of `ranks` (since In[{begun.count}]): weights is theirs"
    assert stay.run("#pragma taas --stay\nweights.sum().item()").check().result == "6.0"
    assert f"ranks 0-1 of `ranks` (since In[{begun.count}]): idle for " in stay.run("%taas stay").check().stream()
    assert stay.run("%taas end").check().stream() == f"ranks 0-1 of `ranks` (since In[{begun.count}]) have ended\n"
    stay.wait_for_no_process()
    assert "no ranks stay" in stay.run("%taas stay").check().stream()


def test_a_rank_cell_runs_on_these_ranks_alone(stay):
    stay.run(PLAIN.replace("2", "3")).check()
    done = stay.run("%%rank 0,2\nprint('here', rank)\nseen = rank").check()
    assert sorted(done.stream().splitlines()) == ["[0] here 0", "[2] here 2"]
    done = stay.run("%%rank 1\nprint(rank, 'seen' in globals())\nrank * 10").check()
    assert done.stream() == "1 False\n" and done.result == "10"
    assert "%%rank 3: there are ranks 0 to 2" in stay.run("%%rank 3\n1").traceback
    assert "%%rank x: not numbers" in stay.run("%%rank x\n1").traceback
    assert "only the cell's own options" in stay.run("%%rank 1 --gpus 2\n1").traceback
    assert "brings back what rank 0 has" in stay.run("%%rank 1 --pull rank\n1").traceback


def test_what_ranks_have_bound_is_theirs_and_the_rest_is_the_notebooks_as_it_was_sent(stay):
    stay.run("step, data, scale = 1, [1], 10\ndef scaled(n):\n    return n * scale").check()
    done = stay.run(PLAIN + "step = 5\ndata.append(2)\nprint(data, scaled(1))").check()
    assert whose(done).endswith("begin here: data, scaled, scale are the notebook's") and done.stream() == "[1, 2] 10\n"
    stay.run("step, scale = 7, 20").check()
    done = stay.run("%%taas --stay\nprint(step, data, scaled(1))").check()
    assert done.stream() == "5 [1, 2] 20\n"  # theirs, changed where they are, and bound anew in the notebook
    assert re.sub(r".*\): ", "", whose(done)) == "step, data, scaled are theirs; scale is the notebook's"
    assert stay.run("%%taas --stay --capture data,step\nprint(step, data)").check().stream() == "7 [1]\n"
    stay.run("data = [3]").check()
    assert stay.run("%%taas --stay\ndel step\nprint(data)").check().stream() == "[3]\n"
    assert stay.run("%%taas --stay\nprint(step)").check().stream() == "7\n"


def test_a_rank_that_lacks_what_others_have_is_sent_it(stay):
    stay.run(PLAIN).check()
    stay.run("data = [1]").check()
    stay.run("%%rank 1\ndata.append(2)\nown = 'own'").check()
    stay.run("own = 'notebook'").check()
    done = stay.run("%%taas --stay --ranks 0,1\nprint(data, own)").check()
    assert sorted(done.stream().splitlines()) == ["[0] [1] notebook", "[1] [1, 2] own"]


def test_an_exception_is_shown_as_ever_and_the_ranks_stay(stay):
    stay.run(PLAIN + "kept = 3\ndef fail(n):\n    raise ValueError(f'bad {n}')").check()
    failed = stay.run("%%taas --stay\nif rank == 1:\n    fail(7)")
    assert failed.error["ename"] == "RankFailed" and failed.error["evalue"] == "rank 1 of 2: ValueError: bad 7 (line 3 of the cell)"
    places = re.findall(r"Cell In\[(\d+)\], line (\d+), in (\S+)", failed.traceback)
    assert places == [(str(failed.count), "3", "<module>"), (str(failed.count - 1), "6", "fail")]
    assert "go on with their variables" in failed.traceback and "taas/notebook" not in failed.traceback
    assert "Traceback" not in failed.stream() + failed.stream("stderr")
    assert stay.run("%%taas --stay\nkept").check().result == "3"
    assert "SystemExit" in stay.run("%%taas --stay\nimport sys\nsys.exit(3)").traceback
    assert stay.run("%%taas --stay\nsys.exit()").check() and stay.run("%%taas --stay\nkept").check().result == "3"


def test_an_interrupt_ends_the_cell_and_not_the_ranks(stay):
    def press(kind, output):
        if kind == "stream" and "ready" in output["text"]:
            stay.interrupt()

    stay.run(PLAIN + "steps = 0").check()
    for _ in range(2):
        done = stay.run("%%taas --stay\nsteps += 1\nprint('ready', flush=True)\nwhile True:\n    time.sleep(0.01)", press)
        assert done.error["ename"] == "Interrupted" and "their variables stay" in done.traceback
    assert stay.run("%%taas --stay\nsteps").check().result == "2"


def test_an_interrupt_before_ranks_have_begun_a_cell_is_for_that_cell(stay):
    def press(kind, output):
        if kind == "display_data" and "ranks are running" in output["data"]["text/plain"]:
            stay.interrupt()

    stay.run(PLAIN + "kept = 3").check()
    done = stay.run("%%taas --stay\ntime.sleep(600)", press)
    assert done.error["ename"] == "Interrupted" and "their variables stay" in done.traceback
    assert stay.run("%%taas --stay\nkept").check().result == "3"


def test_a_rank_that_waits_in_a_collective_is_named_and_a_second_interrupt_ends_the_set(stay):
    said = []

    def press(kind, output):
        if kind == "stream" and "goes on in rank 1" in output["text"]:
            said.append(output["text"])
            stay.interrupt()

    stay.run(GROUP).check()
    done = stay.run("%%taas --stay\nif rank == 0:\n    raise ValueError('away')\ndist.all_reduce(weights)", press)
    assert done.error["ename"] == "Interrupted"
    assert "rank 0 has failed (ValueError)" in said[0] and "in C++ code" in said[1]
    stay.wait_for_no_process()
    assert "their variables are lost; %%taas --stay begins new ones" in stay.run("%%rank 0\n1").traceback


@pytest.mark.parametrize("between", [False, True])
def test_a_killed_rank_ends_the_set(stay, between):
    stay.run(PLAIN + "kept = 3").check()
    stay.run("%%rank 0\n1 / 0")
    if between:
        os.kill(pid_of(stay, 1), signal.SIGKILL)
        stay.wait_for_no_process()
        said = stay.run("%%rank 0\nkept")
        assert "rank 1 was killed by SIGKILL" in said.stream("stderr")
    else:
        said = stay.run("%%taas --stay\nif rank == 1:\n    os.kill(os.getpid(), 9)\ntime.sleep(600)")
        assert said.error["evalue"] == "rank 1 was killed by SIGKILL"
        stay.wait_for_no_process()
    assert "their variables are lost" in said.traceback
    again = stay.run("%%taas --gpus 2 --stay\n'kept' in globals()").check()
    assert "their variables are lost; new ranks begin" in again.stream("stderr") and again.result == "False"
    assert stay.run("%%taas --stay\n1").check().stream("stderr") == ""


def test_a_rank_that_ends_itself_ends_the_set(stay):
    stay.run(PLAIN).check()
    done = stay.run("%%taas --stay\nif rank == 1:\n    os._exit(0)\ntime.sleep(600)")
    assert "rank 1 has ended itself, which ends `ranks`" in done.stream("stderr") and done.error["ename"] == "RankFailed"
    stay.wait_for_no_process()


def test_another_size_is_refused_with_both(stay):
    stay.run(PLAIN).check()
    done = stay.run("%%taas --gpus 4 --stay\n1")
    assert "--gpus 4: `ranks` has 2 ranks, and this cell asks for 4" in done.traceback
    assert "may write was decided when they began" in stay.run("%%taas --stay --no-protect\n1").traceback
    assert "--ranks 2: there are ranks 0 to 1" in stay.run("%%taas --stay --ranks 2\n1").traceback
    assert stay.run("%%taas --stay\nrank").check().result == "0"


def test_sets_have_names(stay):
    stay.run(PLAIN.replace("--stay", "--stay=left") + "name = 'left'").check()
    stay.run('#!g2.8\n#pragma taas --gpus 1 --stay=right\nname = "right"').check()
    assert "which ranks? --of NAME says it; there are `left`, `right`" in stay.run("%%rank 0\nname").traceback
    assert stay.run("%%rank 0 --of left\nname").check().result == "'left'"
    assert stay.run("%%taas --stay=right\nname").check().result == "'right'"
    assert "nobody: no ranks of this name stay; there are `left`, `right`" in stay.run("%taas end nobody").traceback
    stay.run("%taas end left").check()
    assert stay.run("%%rank 0\nname").check().result == "'right'"
    assert stay.run("%%taas --gpus 1\n'fresh'").check().result == "'fresh'"  # ordinary cells are what they were


def test_what_cannot_stay_is_refused_before_anything_is_started(new_kernel, tmp_path):
    stay = new_kernel()
    assert "--max-restarts 1: ranks that start again" in stay.run("%%taas --gpus 2 --max-restarts 1 --stay\n1").traceback
    assert "not with CPU machines" in stay.run("%%taas --gpus 2 --cpus 1 --stay\n1").traceback
    assert "ranks of other machines cannot stay" in stay.run("%%taas --gpus 2 --hosts far --stay\n1").traceback
    assert "%%rank: no ranks stay: a cell with %%taas --stay begins some" in stay.run("%%rank 0\n1").traceback
    assert "%taas end: no ranks stay" in stay.run("%taas end").traceback
    assert "a b: not a name" in stay.run("%%taas '--stay=a b'\n1").traceback
    assert "--of x: %%rank has this option" in stay.run("%%taas --of x\n1").traceback
    stay.run("data = 1").check()
    dry = stay.run("%%taas --gpus 2 --stay --dry-run\ndata").check()
    assert "captured: data (int)" in dry.stream("stderr") and whose(dry).endswith("begin here: data is the notebook's")
    assert not (tmp_path / "taas-runs").exists()
    assert "no ranks stay" in stay.run("%taas stay").check().stream()


def test_values_pictures_and_bars_are_those_of_other_cells(stay):
    stay.run("class Net:\n    pass").check()
    stay.run(PLAIN + "net = Net()\nnet.steps = 1").check()
    done = stay.run("""%%taas --stay --pull net,loss
from matplotlib import pyplot
from tqdm import tqdm
net.steps += 1
loss = 0.5
for step in tqdm(range(3)):
    print("step", step)
pyplot.plot([1, 2])
display({"shown": rank})
""").check()
    assert done.stream() == "step 0\nstep 1\nstep 2\n" and "3/3" in done.stream("stderr")
    bundles = [output["data"] for output in done.of("display_data")]
    assert {"text/plain": "{'shown': 0}"} in bundles and sum("image/png" in bundle for bundle in bundles) == 1
    assert stay.run("isinstance(net, Net), net.steps, loss").check().result == "(True, 2, 0.5)"
    done = stay.run("%%taas --stay\n1").check()
    assert not any("image/png" in output["data"] for output in done.of("display_data")), "a plot is shown once"


def print_between_cells(stay, project):
    """Rank 0 does, after a cell that both have run."""
    stay.run(PLAIN + """
import threading
def later():
    print("later", flush=True)
    open("written", "w").close()
if rank == 0:
    threading.Timer(0.2, later).start()
""").check()
    stay.run(until_there(project / "written")).check()


def test_output_between_cells_is_shown_with_the_next(stay, project):
    print_between_cells(stay, project)
    assert stay.run("%%taas --stay\nprint('now')").check().stream() == "later\nnow\n"


def test_output_between_cells_of_a_rank_that_does_not_run_the_next_is_folded(stay, project):
    print_between_cells(stay, project)
    deadline = time.monotonic() + DEADLINE_SECONDS
    folded = ""
    while "<pre>later</pre>" not in folded:  # what one rank prints comes in order, what two print does not
        assert time.monotonic() < deadline
        done = stay.run("%%rank 1\nprint('now')").check()
        last = done.of("update_display_data")[-1]["data"]
        assert done.stream() == "now\n" and last["text/plain"].startswith("1 rank ran (")
        folded += last["text/html"]


def test_much_output_between_cells_blocks_no_rank(stay, project):
    stay.run(PLAIN + """
import threading
def later():
    for number in range(50_000):
        print("line", number, "x" * 50)
    open("written", "w").close()
if rank == 0:
    threading.Timer(0.2, later).start()
""").check()
    stay.run(until_there(project / "written")).check()
    done = stay.run("%%taas --stay\nprint('now')").check()
    assert done.stream().endswith("x\nnow\n") and "line 49999 " in done.stream() and "line 0 " not in done.stream()
    assert "lines since the last cell are in the log files only" in done.stream("stderr")
    assert "now" in stay.run("%taas logs 0 2").check().stream()
    assert ": running, 2 ranks" in stay.run("%taas status").check().stream()


def test_what_a_cell_spawns_knows_what_earlier_cells_have_defined(stay):
    stay.run("base = 40").check()
    stay.run(PLAIN + "import multiprocessing\ndef add(n):\n    return base + n").check()
    done = stay.run("%%taas --stay\nwith multiprocessing.get_context('spawn').Pool(1) as pool:\n    print(pool.map(add, [1, 2]))")
    assert done.check().stream() == "[41, 42]\n"


@pytest.mark.skipif(not landlock_supported(), reason="no Landlock in this kernel")
def test_files_of_other_ranks_are_theirs_until_the_set_ends(stay, project):
    stay.run(PLAIN + "with open('model.txt', 'w') as file:\n    file.write(f'of rank {rank}')").check()
    assert stay.run("%%taas --stay --ranks 1\nopen('model.txt').read()").check().result == "'of rank 1'"
    ended = stay.run("%taas end").check()
    assert "rank 1 wrote model.txt, too: only what rank 0 wrote was kept" in ended.stream("stderr")
    assert (project / "model.txt").read_text() == "of rank 0"


@pytest.mark.parametrize("ends", ["kill", "restart"])
def test_ranks_do_not_outlive_the_kernel(new_kernel, ends):
    kernel = new_kernel()
    kernel.run(PLAIN + "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)").check()
    kernel.wait_for_processes(6)
    kernel.kill() if ends == "kill" else kernel.end()
    kernel.wait_for_no_process()


def test_they_come_from_the_kernels_session_and_outlive_it(new_kernel, tmp_path):
    kernel = new_kernel()
    kernel.run("%taas warm 2").check()
    kernel.run(GROUP).check()
    journal = (tmp_path / "taas-runs/latest/journal.jsonl").read_text().splitlines()
    assert [event["preloaded"] for event in map(json.loads, journal) if event.get("event") == "rank_spawned"] == [True, True]
    assert "--in" in next(event for event in map(json.loads, journal) if event.get("event") == "run_started")["record"]["command"]
    kernel.run("%taas warm off").check()
    assert kernel.run("%%taas --stay\ndist.all_reduce(weights)\nweights.tolist()").check().result == "[3.0, 3.0]"
    kernel.run("%taas end").check()
    kernel.wait_for_no_process()
