"""ResNet50 cut in two, its halves on two devices: plainly, and as a pipeline of parts of each batch.

    python docs/examples/parallelism/resnet50_model_parallel.py

Measures training steps, ten repeats of each, and writes model_parallel.json, halves.png (two halves beside the
whole) and pipeline.png (the pipeline too, and its split sizes). Two GPUs are used where they are; otherwise both halves
are on one device, which shows that the program is right, and what cutting costs, but not what a second GPU brings.
"""

import argparse
import importlib.util
import json
import pathlib
import time

import torch
from torch import nn
from torchvision.models import ResNet, resnet50

CLASSES = 1000
CUT = 6  # so many of the network's ten children are the lower half: all before its third stage
SMALLEST_IMAGE = 33  # batch normalisation cannot train on a single value, and the last layers see a pixel for each 32


class HalvedResNet(nn.Module):
    """The layers of a whole network, the lower ones on the first device and the upper ones on the second.

    They are the network's own layers, with its weights, and are moved away from where it was.
    """

    def __init__(self, whole: ResNet, first: torch.device, second: torch.device) -> None:
        super().__init__()
        layers = list(whole.children())
        # The network's own forward() flattens before its last layer; here a layer does it.
        layers.insert(len(layers) - 1, nn.Flatten())
        self.lower = nn.Sequential(*layers[:CUT]).to(first)
        self.upper = nn.Sequential(*layers[CUT:]).to(second)
        self.second = second

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.upper(self.lower(images).to(self.second, non_blocking=True))


class PipelinedResNet(HalvedResNet):
    """While the second device works on one part of the batch, the first one works on the next.

    Python only enqueues work for GPUs and goes on to the next part at once, so that a loop over the parts is enough.
    Batch normalisation sees parts, so that training differs a little from whole batches.
    """

    split_size = 1  # samples in a part

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.cat(list(map(super().forward, images.split(self.split_size))))


def choose_devices() -> tuple[torch.device, torch.device]:
    gpus = torch.cuda.device_count()
    if gpus == 0:
        return torch.device("cpu"), torch.device("cpu")
    return torch.device("cuda", 0), torch.device("cuda", 1 if gpus > 1 else 0)


def wait_for_gpus() -> None:
    for index in range(torch.cuda.device_count()):
        torch.cuda.synchronize(index)


def train(model: nn.Module, options: argparse.Namespace, first: torch.device, last: torch.device) -> None:
    """Images begin on the first device, the loss is on the last one."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(options.batches):
        images = torch.randn(options.batch_size, 3, options.image_size, options.image_size, device=first)
        labels = torch.randint(CLASSES, (options.batch_size,), device=last)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


def seconds_of_a_step(model: nn.Module, options: argparse.Namespace, first: torch.device, last: torch.device) -> float:
    wait_for_gpus()
    begin = time.perf_counter()
    train(model, options, first, last)
    wait_for_gpus()
    return (time.perf_counter() - begin) / options.batches


def measure(options: argparse.Namespace) -> dict:
    """What plot.py draws; docs/parallelism.md describes the format.

    The models take turns, so that a machine that becomes slower meanwhile does so for all of them; the first round does
    not count.
    """
    first, second = choose_devices()
    whole = resnet50(num_classes=CLASSES).to(first)
    halves = HalvedResNet(resnet50(num_classes=CLASSES), first, second)
    pipelined = PipelinedResNet(resnet50(num_classes=CLASSES), first, second)
    bars: dict[str, list[float]] = {"two halves": [], "whole": []}
    curve: dict[int, list[float]] = {size: [] for size in sorted({*options.split_sizes, options.split_size})}
    for _ in range(options.repeats + 1):
        bars["two halves"].append(seconds_of_a_step(halves, options, first, second))
        bars["whole"].append(seconds_of_a_step(whole, options, first, first))
        for split_size, seconds in curve.items():
            pipelined.split_size = split_size
            seconds.append(seconds_of_a_step(pipelined, options, first, second))
    bars["pipelined"] = curve[options.split_size]
    return {
        "title": "two GPUs" if first != second else f"both halves on {first}: there is no second GPU",
        "ylabel": "seconds for a step",
        "bars": [{"label": label, "seconds": seconds[1:]} for label, seconds in bars.items()],
        "curve": {"split_size": list(curve), "seconds": [seconds[1:] for seconds in curve.values()]},
    }


def read_options() -> argparse.Namespace:
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--batches", type=int, default=3 if gpu else 1, help="steps of a repeat")
    parser.add_argument("--batch-size", type=int, default=120 if gpu else 8)
    parser.add_argument("--image-size", type=int, default=128 if gpu else 64)
    parser.add_argument("--split-size", type=int, help="of the pipelined bar; default: a quarter of the batch")
    parser.add_argument("--split-sizes", type=int, nargs="+", help="of the curve; default: 1, 2, 4, … up to the batch")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), help="folder for the three files")
    options = parser.parse_args()
    options.split_size = options.split_size or max(1, options.batch_size // 4)
    options.split_sizes = options.split_sizes or [2**power for power in range(options.batch_size.bit_length())]
    check(parser, options)
    return options


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    numbers = {
        "repeats": 1,
        "batches": 1,
        "batch-size": 1,
        "split-size": 1,
        "split-sizes": 1,
        "image-size": SMALLEST_IMAGE,
    }
    for name, least in numbers.items():
        value = getattr(options, name.replace("-", "_"))
        if min(value if isinstance(value, list) else [value]) < least:
            parser.error(f"--{name} has to be at least {least}")


def tell(results: dict) -> None:
    means = {bar["label"]: sum(bar["seconds"]) / len(bar["seconds"]) for bar in results["bars"]}
    print(results["title"])
    for label, mean in means.items():
        print(f"{label}: {mean:.4f} s, {mean / means['whole'] - 1:+.1%}")


def main() -> None:
    options = read_options()
    torch.manual_seed(0)
    results = measure(options)
    tell(results)
    measured = options.output / "model_parallel.json"
    measured.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if importlib.util.find_spec("matplotlib") is None:
        print(f"no matplotlib here: plot.py draws {measured} where there is one")
        return
    import plot

    plot.draw(results, options.output / "halves.png", labels=["two halves", "whole"])
    plot.draw(results, options.output / "pipeline.png")


if __name__ == "__main__":
    main()
