"""What it costs to compile a program of libtaas: processor time and memory of the compiler, for a program of docs/examples/cpp as it is and
with taas/taas.hpp precompiled, beside a main() that includes one header and nothing else.

    .venv/bin/python apps/bench/training/compile.py [--rounds 3] [--compiler c++]
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import measure  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "docs/examples/cpp/auto_mode.cpp"
HEADERS = ("torch/torch.h", "torch/nn/module.h", "taas/taas.hpp", "taas/checkpoint.hpp", "taas/process_group.hpp")


def cost_of(command) -> tuple:
    """Seconds of processor time, and mebibytes."""
    process = subprocess.Popen([str(word) for word in command])
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]}: wait status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    options_parser = measure.parser(__doc__)
    options_parser.set_defaults(rounds=3)
    options_parser.add_argument("--compiler", default="c++")
    options = measure.parsed(options_parser)
    measure.need("torch")
    # Not imported here: the memory of this process would be the least that a child can be said to take.
    ask = "import os, torch; print(os.path.dirname(torch.__file__), int(torch._C._GLIBCXX_USE_CXX11_ABI), sep='\\n')"
    folder_of_torch, abi = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.splitlines()
    include = pathlib.Path(folder_of_torch) / "include"
    compiler = [options.compiler, "-std=c++20", "-O2", "-fPIC", "-DUSE_DISTRIBUTED", f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
                f"-I{ROOT / 'include'}", "-isystem", include, "-isystem", include / "torch/csrc/api/include"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "taas.hpp").write_text("#include <taas/taas.hpp>\n")
        took, memory = cost_of([*compiler, "-x", "c++-header", folder / "taas.hpp", "-o", folder / "taas.hpp.gch"])
        (folder / "empty.cpp").write_text("int main() {}\n")
        ways = {f"main() with {header}": ["-include", header, folder / "empty.cpp"] for header in HEADERS}
        ways |= {"auto_mode.cpp": [PROGRAM], "auto_mode.cpp, taas/taas.hpp precompiled": ["-include", folder / "taas.hpp", PROGRAM]}
        costs = {name: [] for name in ways}
        for number in range(options.rounds):
            for name in measure.rotated(ways, number):
                costs[name].append(cost_of([*compiler, *ways[name], "-c", "-o", folder / "out.o"]))
    print("| what | CPU | memory |\n|---|---|---|")
    for name, samples in costs.items():
        seconds, mebibytes = (measure.summary(list(values))["median"] for values in zip(*samples))
        print(f"| {name} | {seconds:.1f} s | {mebibytes:.0f} MiB |")
    print(f"| taas/taas.hpp, precompiled once | {took:.1f} s | {memory:.0f} MiB |")


if __name__ == "__main__":
    measure.run(main)
