"""Draws the figures of docs/parallelism.md: `draw_parallelism.py [FOLDER]`, by default the folder of this file."""

import pathlib
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "taas", "font.size": 9})  # the same bytes each time
from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.patches import FancyBboxPatch, Rectangle  # noqa: E402

DEVICE, MODEL, DATA, BACKWARD, LINE = "#eef1f5", "#8fb8de", "#f6cf8b", "#e3a3a3", "#444444"
UNITS_PER_INCH = 1.25


def canvas(width: float, height: float) -> Axes:
    figure = pyplot.figure(figsize=(width / UNITS_PER_INCH, height / UNITS_PER_INCH))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    axes.add_patch(Rectangle((0, 0), width, height, facecolor="white", edgecolor="none"))
    return axes


def box(axes: Axes, x: float, y: float, width: float, height: float, text: str, colour: str) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x, y), width, height, boxstyle="round,pad=0,rounding_size=0.06", facecolor=colour, edgecolor=LINE
        )
    )
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center")


def frame(axes: Axes, x: float, y: float, width: float, height: float, text: str, *, dashed: bool) -> None:
    """A process (dashed) or a device, its name in the upper left corner."""
    axes.add_patch(
        Rectangle(
            (x, y),
            width,
            height,
            facecolor="none" if dashed else DEVICE,
            edgecolor=LINE,
            linestyle="--" if dashed else "-",
        )
    )
    axes.text(x + 0.1, y + height - 0.07, text, ha="left", va="top", color=LINE)


def process(axes: Axes, x: float, y: float, width: float, height: float, text: str) -> None:
    frame(axes, x, y, width, height, text, dashed=True)


def device(axes: Axes, x: float, y: float, width: float, height: float, text: str) -> None:
    frame(axes, x, y, width, height, text, dashed=False)


def arrow(axes: Axes, begin: tuple[float, float], end: tuple[float, float], style: str = "->") -> None:
    axes.annotate("", xy=end, xytext=begin, arrowprops={"arrowstyle": style, "color": LINE, "shrinkA": 0, "shrinkB": 0})


def single_device() -> Axes:
    axes = canvas(7.4, 1.8)
    process(axes, 1.7, 0.1, 4, 1.6, "one process")
    device(axes, 2.2, 0.25, 3, 1.1, "cuda:0, or the CPU")
    box(axes, 2.7, 0.4, 2, 0.55, "model", MODEL)
    box(axes, 0.1, 0.4, 1.2, 0.55, "batch", DATA)
    box(axes, 6.1, 0.4, 1.2, 0.55, "output", DATA)
    arrow(axes, (1.3, 0.67), (2.7, 0.67))
    arrow(axes, (4.7, 0.67), (6.1, 0.67))
    return axes


def data_parallel() -> Axes:
    axes = canvas(8.6, 3.6)
    process(axes, 1.6, 0.1, 5.4, 3.4, "one process, a thread for each device")
    box(axes, 0.1, 1.18, 1.1, 0.7, "batch\nof 16", DATA)
    box(axes, 7.4, 1.18, 1.1, 0.7, "output\nof 16", DATA)
    for index, size in enumerate((6, 6, 4)):
        y = 2.2 - index
        device(axes, 3.2, y, 2.1, 0.9, f"cuda:{index}")
        box(axes, 3.4, y + 0.12, 1.7, 0.42, "copy of the model" if index else "model", MODEL)
        box(axes, 2.2, y + 0.12, 0.5, 0.42, str(size), DATA)
        box(axes, 5.8, y + 0.12, 0.5, 0.42, str(size), DATA)
        middle = y + 0.33
        arrow(axes, (1.2, 1.53), (2.2, middle))
        arrow(axes, (2.7, middle), (3.4, middle))
        arrow(axes, (5.1, middle), (5.8, middle))
        arrow(axes, (6.3, middle), (7.4, 1.53))
    return axes


def distributed_data_parallel() -> Axes:
    axes = canvas(8.6, 4.1)
    for rank in range(4):
        x = 0.2 + 2.1 * rank
        process(axes, x, 1.0, 1.9, 3.0, f"rank {rank}")
        box(axes, x + 0.3, 3.0, 1.3, 0.5, "own batch", DATA)
        device(axes, x + 0.15, 1.2, 1.6, 1.4, f"cuda:{rank}")
        box(axes, x + 0.3, 1.5, 1.3, 0.6, "replica", MODEL)
        arrow(axes, (x + 0.95, 3.0), (x + 0.95, 2.1))
        arrow(axes, (x + 0.95, 1.5), (x + 0.95, 0.65), "<->")
    box(axes, 0.2, 0.15, 8.2, 0.5, "all-reduce: each rank gets the mean of all gradients", BACKWARD)
    return axes


def replicas_over_several_devices() -> Axes:
    axes = canvas(8.6, 3.6)
    for rank in range(2):
        x = 0.3 + 4.1 * rank
        process(axes, x, 0.9, 3.8, 2.6, f"rank {rank}, a replica over two devices")
        box(axes, x + 1.3, 2.65, 1.2, 0.42, "own batch", DATA)
        for half in range(2):
            left = x + 0.2 + 1.85 * half
            device(axes, left, 1.1, 1.55, 1.25, f"cuda:{2 * rank + half}")
            box(axes, left + 0.12, 1.35, 1.3, 0.5, "first half" if half == 0 else "second half", MODEL)
            arrow(axes, (left + 0.77, 1.35), (left + 0.77, 0.65), "<->")
        arrow(axes, (x + 1.6, 2.65), (x + 1.1, 1.85))
        arrow(axes, (x + 1.62, 1.6), (x + 2.17, 1.6))
    box(axes, 0.3, 0.15, 7.9, 0.5, "all-reduce: each half gets the mean of its gradients in all ranks", BACKWARD)
    return axes


def timeline(axes: Axes, rows: list[tuple[str, list[tuple[float, float, str]]]], end: float) -> None:
    """Who works when: for each device, blocks of (begin, length, name).

    Names with a stroke are of the backward pass.
    """
    for index, (name, blocks) in enumerate(rows):
        y = 1.3 - 0.75 * index
        axes.add_patch(Rectangle((1.0, y), end, 0.6, facecolor=DEVICE, edgecolor="none"))
        axes.text(0.9, y + 0.3, name, ha="right", va="center")
        for begin, length, text in blocks:
            box(
                axes,
                1.0 + begin,
                y + 0.02,
                length,
                0.56,
                text,
                BACKWARD if "backward" in text or "′" in text else MODEL,
            )
    arrow(axes, (1.0, 0.4), (1.0 + end, 0.4))
    axes.text(1.0 + end, 0.2, "time of one step", ha="right", va="center")


def model_parallel() -> Axes:
    axes = canvas(9.2, 2.1)
    timeline(
        axes,
        [
            ("cuda:0", [(0, 2, "first half, forward"), (6, 2, "first half, backward")]),
            ("cuda:1", [(2, 2, "second half, forward"), (4, 2, "second half, backward")]),
        ],
        8,
    )
    return axes


def pipelined_model_parallel() -> Axes:
    axes = canvas(9.2, 2.1)
    parts, length = (1, 2, 3, 4), 0.5
    forward = [(length * index, length, str(part)) for index, part in enumerate(parts)]
    backward = [(length * (len(parts) + 1 + index), length, f"{part}′") for index, part in enumerate(reversed(parts))]
    later = [(begin + length, size, text) for begin, size, text in forward]
    last = [(begin + length, size, text) for begin, size, text in backward]
    timeline(axes, [("cuda:0", forward + last), ("cuda:1", later + backward)], 8)
    axes.text(6.2, 1.25, "1 to 4: forward, part by part\n4′ to 1′: backward", ha="left", va="center")
    return axes


FIGURES = (
    single_device,
    data_parallel,
    distributed_data_parallel,
    replicas_over_several_devices,
    model_parallel,
    pipelined_model_parallel,
)


def main() -> None:
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    for draw in FIGURES:
        figure = draw().figure
        figure.savefig(folder / f"parallelism-{draw.__name__.replace('_', '-')}.svg", metadata={"Date": None})
        pyplot.close(figure)


if __name__ == "__main__":
    main()
