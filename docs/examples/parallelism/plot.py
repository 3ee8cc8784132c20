"""`plot.py MEASURED.json PICTURE`: draws step times as bars and, where there is one, the curve over split sizes.

    python docs/examples/parallelism/plot.py model_parallel.json pipeline.png
    python docs/examples/parallelism/plot.py model_parallel.json halves.svg --bars "two halves" whole

Bars and points are means; the lines through them reach one standard deviation up and down. The JSON is described in
docs/parallelism.md.
"""

import argparse
import json
import pathlib
import statistics

import matplotlib

matplotlib.use("agg")
matplotlib.rcParams["svg.hashsalt"] = "taas"  # the same picture from the same figures
from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

FILL, LINE, SPREAD = "#8fb8de", "#31628f", "#444444"
WHISKERS = {"elinewidth": 1.2, "capsize": 4}


def means_and_deviations(samples: list[list[float]]) -> tuple[list[float], list[float]]:
    return [statistics.fmean(each) for each in samples], [statistics.pstdev(each) for each in samples]


def draw_bars(axes: Axes, bars: list[dict], ylabel: str) -> None:
    means, deviations = means_and_deviations([bar["seconds"] for bar in bars])
    names = [bar["label"] for bar in bars]
    axes.bar(names, means, 0.5, yerr=deviations, color=FILL, edgecolor=LINE, ecolor=SPREAD, error_kw=WHISKERS)
    axes.set_ylabel(ylabel)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color="#dddddd")


def draw_curve(axes: Axes, curve: dict) -> None:
    means, deviations = means_and_deviations(curve["seconds"])
    sizes = curve["split_size"]
    axes.errorbar(sizes, means, yerr=deviations, color=LINE, marker="s", markersize=4, ecolor=SPREAD, **WHISKERS)
    axes.set_xlabel("samples in a part of the pipeline")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    axes.set_ylim(bottom=0)
    axes.grid(color="#dddddd")


def make_figure(results: dict, labels: list[str] | None = None) -> Figure:
    """All bars and the curve, or the bars of these labels alone."""
    bars = [bar for bar in results["bars"] if labels is None or bar["label"] in labels]
    curve = results.get("curve") if labels is None else None
    columns = 2 if curve else 1
    figure, [panels] = pyplot.subplots(1, columns, figsize=(5 * columns, 4), sharey=True, squeeze=False)
    draw_bars(panels[0], bars, results["ylabel"])
    if curve:
        draw_curve(panels[1], curve)
    figure.suptitle(results.get("title", ""))
    figure.tight_layout()
    return figure


def draw(results: dict, picture: pathlib.Path, labels: list[str] | None = None) -> None:
    """The name's ending says what kind of picture: .png or .svg."""
    figure = make_figure(results, labels)
    figure.savefig(picture, metadata={"Date": None} if picture.suffix == ".svg" else None)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("measured", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path, help="*.png or *.svg")
    parser.add_argument("--bars", nargs="+", metavar="LABEL", help="only these, and no curve")
    options = parser.parse_args()
    try:
        results = json.loads(options.measured.read_text(encoding="utf-8"))
        known = [bar["label"] for bar in results["bars"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"{options.measured} has no measurements: {error!r}")
    for label in options.bars or []:
        if label not in known:
            parser.error(f"{options.measured} has no bar {label!r}, only {', '.join(map(repr, known))}")
    draw(results, options.picture, options.bars)


if __name__ == "__main__":
    main()
