"""ResNet50 in two halves, and the pictures of its step times."""

import json
import statistics

import pytest

from conftest import EXAMPLES, need

PROGRAMS = EXAMPLES / "parallelism"
PNG, SVG = b"\x89PNG", b"<?xml"
MEASURED = {
    "title": "made up",
    "ylabel": "seconds",
    "bars": [
        {"label": "two halves", "seconds": [3.0, 5.0]},
        {"label": "whole", "seconds": [1.0, 1.5, 2.0]},
        {"label": "pipelined", "seconds": [2.0]},
    ],
    "curve": {"split_size": [1, 4], "seconds": [[2.0, 4.0], [1.0, 1.0]]},
}


@pytest.fixture
def plot(monkeypatch):
    need("matplotlib")
    monkeypatch.syspath_prepend(PROGRAMS)
    import plot

    return plot


def deviations(errors) -> list[float]:
    """Half the length of each line through a mean."""
    return [(segment[1][1] - segment[0][1]) / 2 for segment in errors.get_segments()]


def check_bars(axes, bars):
    (drawn,) = (container for container in axes.containers if hasattr(container, "patches"))
    assert [label.get_text() for label in axes.get_xticklabels()] == [bar["label"] for bar in bars]
    assert [bar.get_height() for bar in drawn.patches] == pytest.approx(
        [statistics.fmean(bar["seconds"]) for bar in bars]
    )
    assert deviations(drawn.errorbar.lines[2][0]) == pytest.approx([statistics.pstdev(bar["seconds"]) for bar in bars])


def check_curve(axes, curve):
    (drawn,) = axes.containers
    line, _, (errors,) = drawn.lines
    assert list(line.get_xdata()) == curve["split_size"]
    assert list(line.get_ydata()) == pytest.approx([statistics.fmean(seconds) for seconds in curve["seconds"]])
    assert deviations(errors) == pytest.approx([statistics.pstdev(seconds) for seconds in curve["seconds"]])


def test_pictures_are_what_was_measured(plot):
    bars, curve = plot.make_figure(MEASURED).axes
    check_bars(bars, MEASURED["bars"])
    check_curve(curve, MEASURED["curve"])
    assert bars.get_ylabel() == "seconds"
    (only,) = plot.make_figure(MEASURED, ["two halves", "whole"]).axes
    check_bars(only, MEASURED["bars"][:2])
    (alone,) = plot.make_figure({"ylabel": "s", "bars": MEASURED["bars"]}).axes
    check_bars(alone, MEASURED["bars"])


def test_plot_from_a_file(plot, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "measured.json").write_text(json.dumps(MEASURED))

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["plot.py", *arguments])
        plot.main()

    for name, begin in (("all.png", PNG), ("all.svg", SVG)):
        run("measured.json", name)
        assert (tmp_path / name).read_bytes().startswith(begin)
    for arguments, words in (
        (("measured.json", "no.png", "--bars", "thirds"), "measured.json has no bar 'thirds', only "),
        (("missing.json", "no.png"), "missing.json has no measurements: "),
    ):
        with pytest.raises(SystemExit) as ended:
            run(*arguments)
        assert ended.value.code == 2 and words in capsys.readouterr().err
    assert not (tmp_path / "no.png").exists()


def test_halves_compute_what_the_whole_does(monkeypatch):
    need("torch", "torchvision")
    monkeypatch.syspath_prepend(PROGRAMS)
    import resnet50_model_parallel as program
    import torch

    cpu = torch.device("cpu")
    torch.manual_seed(0)
    whole = program.resnet50(num_classes=program.CLASSES).eval()
    halves, pipelined = program.HalvedResNet(whole, cpu, cpu).eval(), program.PipelinedResNet(whole, cpu, cpu).eval()
    pipelined.split_size = 2
    for model in (halves, pipelined):  # no layer is left out, and none is there twice
        assert list(map(id, model.parameters())) == list(map(id, whole.parameters()))
    assert [len(half) for half in (halves.lower, halves.upper)] == [6, 5]
    images = torch.randn(5, 3, 32, 32)
    with torch.no_grad():
        expected = whole(images)
        assert torch.equal(halves(images), expected)
        torch.testing.assert_close(pipelined(images), expected, rtol=1e-3, atol=1e-3 * float(expected.std()))


def test_resnet50_is_measured_and_drawn(runner, plot):
    need("torch", "torchvision")
    result = runner.python(
        PROGRAMS / "resnet50_model_parallel.py", "--repeats", 2, "--batch-size", 2, "--image-size", 33
    )
    assert result.returncode == 0, result.stderr
    measured = json.loads((runner.folder / "model_parallel.json").read_text())
    assert [bar["label"] for bar in measured["bars"]] == ["two halves", "whole", "pipelined"]
    assert measured["curve"]["split_size"] == [1, 2]
    samples = [*(bar["seconds"] for bar in measured["bars"]), *measured["curve"]["seconds"]]
    assert all(len(seconds) == 2 and min(seconds) > 0 for seconds in samples)
    assert measured["title"] == "both halves on cpu: there is no second GPU"
    assert measured["ylabel"] == "seconds for a step"
    for name in ("halves.png", "pipeline.png"):
        assert (runner.folder / name).read_bytes().startswith(PNG)
    for label, line in zip(("two halves", "whole", "pipelined"), result.stdout.splitlines()[1:], strict=True):
        mean = next(statistics.fmean(bar["seconds"]) for bar in measured["bars"] if bar["label"] == label)
        assert line.startswith(f"{label}: {mean:.4f} s")
