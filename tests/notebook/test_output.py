"""What a cell shows: live streams, rich output in its place, the other ranks folded."""

import sys

import pytest
from taas.notebook.view import View

PLOT = "\n".join(
    ["from matplotlib import pyplot", "pyplot.plot([1, 2])", "print('before')", "pyplot.show()", "print('after')"]
)


def shown(done):
    """Streams and displays in their order, without the line about the run."""
    found = []
    for kind, output in done.outputs:
        if kind == "stream" and output["name"] == "stdout":
            if found and found[-1][0] == "text":
                found[-1] = ("text", found[-1][1] + output["text"])
            else:
                found.append(("text", output["text"]))
        elif kind in ("display_data", "execute_result") and "ranks" not in output["data"].get("text/plain", ""):
            found.append((kind, output["data"]))
        elif kind == "clear_output":
            found.append((kind, output))
    return found


def folds(done):
    """The newest state of the line about the run and the folded ranks."""
    about = [
        output
        for kind, output in done.outputs
        if kind in ("display_data", "update_display_data") and "ranks" in output["data"]["text/plain"]
    ]
    return about[-1]["data"] if about else None


def test_rank_0s_output_comes_while_the_cell_runs(kernel, project):
    """The cell waits for a file that is made when its first line has been seen."""

    def make(kind, output):
        if kind == "stream" and "waiting" in output["text"]:
            (project / "go").touch()

    kernel.run("import os, time").check()
    done = kernel.run(
        '%%taas --gpus 2\nprint("waiting")\nwhile not os.path.exists("go"):\n    time.sleep(0.01)\nprint("went")', make
    ).check()
    assert done.stream() == "waiting\nwent\n"


def test_text_without_a_line_end_and_progress_bars_are_what_they_were(kernel):
    kernel.run("import time, sys").check()
    done = kernel.run("""%%taas --gpus 2
print("one", end="", flush=True)
time.sleep(0.5)                     # longer than a launcher waits for the rest of a line
print(", two", end="")
time.sleep(0.5)
print("\\n")
for state in range(3):
    print(f"\\r{state} of 2", end="", file=sys.stderr, flush=True)
print(file=sys.stderr)
print("end", end="")
""").check()
    assert done.stream() == "one, two\n\nend"
    assert "\r0 of 2\r1 of 2\r2 of 2\n" in done.stream("stderr")


@pytest.mark.gate
def test_rich_output_stands_where_it_was_made(kernel):
    done = kernel.run("""%%taas --gpus 2
class Rich:
    def _repr_html_(self): return "<b>rich</b>"
    def __repr__(self): return "plain"
print("a")
handle = display(Rich(), display_id=True)
print("b", end="")
display({"text/plain": "raw"}, raw=True)
print("c")
handle.update(Rich())
from IPython.display import clear_output, display as ipythons
clear_output(wait=True)
ipythons("text")
Rich()
""").check()
    assert shown(done) == [
        ("text", "a\n"),
        ("display_data", {"text/plain": "plain", "text/html": "<b>rich</b>"}),
        ("text", "b"),
        ("display_data", {"text/plain": "raw"}),
        ("text", "c\n"),
        ("clear_output", {"wait": True}),
        ("display_data", {"text/plain": "'text'"}),
        ("execute_result", {"text/plain": "plain", "text/html": "<b>rich</b>"}),
    ]
    updates = [output for output in done.of("update_display_data") if output["data"]["text/plain"] == "plain"]
    first = next(output for output in done.of("display_data") if output["data"]["text/plain"] == "plain")
    assert [update["transient"] for update in updates] == [first["transient"]]


def test_plots_are_pictures_in_their_place(kernel):
    done = kernel.run(f"%%taas --gpus 2\n{PLOT}\npyplot.plot([2, 1]);").check()
    kinds = [(kind, sorted(what) if isinstance(what, dict) else what) for kind, what in shown(done)]
    picture = ("display_data", ["image/png", "text/plain"])
    assert kinds == [("text", "before\n"), picture, ("text", "after\n"), picture]


@pytest.mark.gate
def test_other_ranks_are_folded_and_the_same_text_once(kernel):
    done = kernel.run(
        '%%taas --gpus 4\nimport os\nprint("hello")\nif os.environ["RANK"] == "3":\n    print("<more>")'
    ).check()
    assert done.stream() == "hello\n"
    assert folds(done)["text/plain"].splitlines()[1:] == ["ranks 1-2: 1 line ×2", "rank 3: 2 lines"]
    html = folds(done)["text/html"]
    assert html.count("<details>") == 2 and "&lt;more&gt;" in html


def test_all_lines_of_a_folded_rank_are_counted_though_only_the_last_are_kept(kernel):
    done = kernel.run('%%taas --gpus 2\nfor number in range(20_000):\n    print("line", number)').check()
    assert folds(done)["text/plain"].splitlines()[1:] == ["rank 1: 20000 lines"]


def test_chosen_ranks_are_shown_with_their_number(kernel):
    done = kernel.run('%%taas --gpus 3 --ranks 0,2\nimport os\nprint("I am", os.environ["RANK"])').check()
    assert sorted(done.stream().splitlines()) == ["[0] I am 0", "[2] I am 2"]
    assert "rank 1: 1 line" in folds(done)["text/plain"]


def test_much_output_is_complete(kernel):
    done = kernel.run("%%taas --gpus 2\nfor i in range(20000):\n    print(i)").check()
    assert done.stream() == "".join(f"{i}\n" for i in range(20000))


class Stream:
    """Shows what was written when it is flushed, as a kernel's stdout and stderr do now and then."""

    def __init__(self, shown):
        self._written, self._shown = "", shown

    def write(self, text):
        self._written += text

    def flush(self):
        if self._written:
            self._shown.append(self._written)
        self._written = ""


def test_the_two_streams_are_shown_in_their_order(monkeypatch):
    shown = []
    monkeypatch.setattr(sys, "stdout", Stream(shown))
    monkeypatch.setattr(sys, "stderr", Stream(shown))
    view = View(None, [0])
    for stream, text, progress in [
        ("stderr", "0%", True),
        ("stderr", "100%", False),
        ("stdout", "after", False),
        ("stdout", "more", False),
        ("stderr", "0%", True),
    ]:
        view.line(0, stream, text, progress=progress, is_open=False, fetch=None)
    view.flush()
    assert shown == ["\r0%\r100%\n", "after\nmore\n", "\r0%"]


def test_that_there_is_no_gpu_is_said_once_in_a_kernel_and_in_no_red(new_kernel):
    kernel = new_kernel()
    kernel.run("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''").check()
    cells = [kernel.run(f"%%taas --gpus {count}\n1;").check() for count in (2, 3)]
    said = [[output["data"]["text/plain"] for output in cell.of("display_data")] for cell in cells]
    assert said[0][0].startswith("no GPU here: 2 CPU ranks with gloo") and "no GPU" not in "".join(said[1])
    assert not any("no GPU" in cell.stream("stderr") for cell in cells)


def test_pictures_of_other_ranks_are_counted_and_shown_when_they_are_asked_for(kernel):
    done = kernel.run(f"%%taas --gpus 3\n{PLOT}").check()
    assert folds(done)["text/plain"].splitlines()[1:] == ["ranks 1-2: 2 lines, 1 picture (--ranks 1 shows it) ×2"]
    assert "<img" not in folds(done)["text/html"]
    pictures = [data for kind, data in shown(done) if kind == "display_data"]
    assert ["image/png" in data for data in pictures] == [True]
    done = kernel.run(f"%%taas --gpus 3 --ranks 0,1\n{PLOT}").check()
    assert ["image/png" in data for kind, data in shown(done) if kind == "display_data"] == [True, True]
