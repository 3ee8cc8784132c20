"""Delivery of ready batches from one worker process on another node into a Python loop, beside the other ways.

The limit, raw TCP into recycled buffers, is measured in the same rounds. As root: the other node is a network
namespace.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import measure  # noqa: E402

measure.need("torch", "numpy")

import contenders  # noqa: E402
import nodes  # noqa: E402

COUNTS = {"image": 120, "digits": 10000}  # of which three tenths warm up
ENDPOINT = str(pathlib.Path(__file__).with_name("endpoint.py"))


def one_round(node, name: str, kind: str, options, environment: dict) -> dict:
    """Both ends are fresh processes. The consumer's JSON line is the result."""
    count = str(COUNTS[kind])
    with_peer = name not in contenders.LOCAL
    encryption = getattr(contenders.CONTENDERS[name], "ENCRYPTION", None)
    if encryption:  # a plan that the worker can read when it starts; the consumer writes the port into it
        contenders.write_plan(environment["TAAS_DATA_PLAN"], [], encryption)
    peer = (
        node.start([options.python, ENDPOINT, "serve", name, node.there, kind, count], env=environment)
        if with_peer
        else None
    )
    try:
        port = measure.announced(peer) if peer else "0"
        consumer = subprocess.run(
            [options.python, ENDPOINT, "consume", name, node.there, port, kind, count],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            timeout=300,
            check=True,
        )
        return json.loads(consumer.stdout.splitlines()[-1])
    finally:
        if peer:
            peer.kill()
            peer.wait()


def compare(options) -> dict:
    results = {kind: {name: [] for name in options.only} for kind in options.kinds}
    with tempfile.TemporaryDirectory() as folder, nodes.OtherNode() as node:
        environment = {
            **os.environ,
            "PYTHONPATH": str(options.package.resolve()),
            "CUDA_VISIBLE_DEVICES": "",
            "TAAS_DATA_PLAN": f"{folder}/plan.json",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
        }
        for number in range(options.rounds):
            for kind in options.kinds:
                for name in measure.rotated(options.only, number):
                    results[kind][name].append(one_round(node, name, kind, options, environment))
                    print(kind, name, results[kind][name][-1], file=sys.stderr)
    return results


def row(kind: str, name: str, samples: dict) -> list:
    speed = measure.summary([s["gigabytes_per_second"] for s in samples[name]])
    cost = measure.summary([s["cpu_seconds_per_gigabyte"] for s in samples[name]])
    cells = [
        kind,
        name,
        f"{speed['median']:.2f} ({speed['min']:.2f} to {speed['max']:.2f})",
        f"{cost['median']:.2f} ({cost['min']:.2f} to {cost['max']:.2f})",
    ]
    for ours in ("taas", "taas-local"):
        if ours not in samples or name == ours:
            cells.append("1" if name == ours else "–")
            continue
        share = measure.ratio(
            [s["gigabytes_per_second"] for s in samples[ours]], [s["gigabytes_per_second"] for s in samples[name]]
        )
        cells.append(f"{share['median']:.2f} ({share['min']:.2f} to {share['max']:.2f})")
    return cells


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--package",
        type=pathlib.Path,
        default=pathlib.Path("build/release/python"),
        help="folder of the built Python package",
    )
    parser.add_argument("--python", default=sys.executable, help="an interpreter with torch, pyarrow and tensorflow")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--kinds", nargs="+", default=list(COUNTS), choices=COUNTS)
    parser.add_argument("--only", nargs="+", default=list(contenders.CONTENDERS), choices=contenders.CONTENDERS)
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def main():
    options = arguments()
    measure.need(
        "torch",
        "numpy",
        *(contenders.NEEDS[name] for name in options.only if name in contenders.NEEDS),
        python=options.python,
    )
    measure.need_root("a node in a namespace of its own")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    results = compare(options)
    rows = [row(kind, name, samples) for kind, samples in results.items() for name in samples]
    measure.report(
        "data delivery",
        options,
        results,
        rows,
        ["batch", "way", "GB/s", "consumer CPU-s per GB", "taas / this", "taas-local / this"],
        [f"huge pages for shared memory: {nodes.shared_memory_policy()}"],
    )


if __name__ == "__main__":
    measure.run(main)
