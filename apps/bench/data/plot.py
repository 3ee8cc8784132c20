"""`plot.py RESULTS.json… PICTURE.svg`: what delivery.py wrote, as bars.

Medians, with lines from the lowest to the highest.
"""

import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import measure  # noqa: E402

measure.need("matplotlib")

import matplotlib  # noqa: E402

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "taas"  # the same picture from the same figures
from matplotlib import pyplot  # noqa: E402

TITLES = {"image": "batches of 38.5 MB", "digits": "batches of 200 KB"}
LOCAL = {"taas-local", "dataloader", "dataloader-2"}


def speeds(paths: list) -> dict:
    """kind -> way -> GB/s of each round; of a way in several files, the first one's."""
    merged: dict = {}
    for path in paths:
        for kind, ways in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["results"].items():
            for way, samples in ways.items():
                merged.setdefault(kind, {}).setdefault(way, [sample["gigabytes_per_second"] for sample in samples])
    return merged


def draw(axes, kind: str, ways: dict):
    names = list(reversed(ways))
    medians = [statistics.median(ways[name]) for name in names]
    spread = [
        [median - min(ways[name]) for name, median in zip(names, medians)],
        [max(ways[name]) - median for name, median in zip(names, medians)],
    ]
    colours = ["tab:blue" if name.startswith("taas") else "tab:gray" for name in names]
    axes.barh(names, medians, xerr=spread, color=colours, ecolor="black", capsize=2)
    axes.set_title(TITLES[kind])
    axes.set_xlabel("GB/s")


def main():
    if len(sys.argv) < 3:
        measure.complain("name the files of results, and last the picture that is to be written")
    *paths, picture = sys.argv[1:]
    results = speeds(paths)
    figure, rows = pyplot.subplots(1, len(results), figsize=(9, 3), squeeze=False)
    for axes, (kind, ways) in zip(rows[0], results.items()):
        draw(axes, kind, {f"{name} (same machine)" if name in LOCAL else name: values for name, values in ways.items()})
    figure.tight_layout()
    figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    measure.run(main)
