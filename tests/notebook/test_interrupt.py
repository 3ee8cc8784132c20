"""The stop button, a kernel that is killed: no process is left."""

import pytest

STUBBORN = """%%taas --gpus 2
import signal, time, os
told = []
def note(number, frame):
    told.append(number)
    if os.environ["RANK"] == "0":
        print("got", signal.Signals(number).name, flush=True)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, note)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


@pytest.mark.gate
def test_an_interrupt_is_a_keyboard_interrupt_in_ranks_and_ends_the_cell(kernel):
    def press(kind, output):
        if kind == "stream" and "ready" in output["text"]:
            kernel.interrupt()

    done = kernel.run(
        """%%taas --gpus 2
import time
try:
    print("ready", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("saving", flush=True)
    raise
""",
        press,
    )
    assert done.error["ename"] == "Interrupted" and done.traceback.startswith("KeyboardInterrupt")
    assert done.stream() == "ready\nsaving\n"
    kernel.wait_for_no_process()
    assert kernel.run("%%taas --gpus 2\n'still works'").check().result == "'still works'"


def test_three_steps_for_ranks_that_do_not_listen(kernel):
    pressed = []

    def press(kind, output):
        if kind == "stream" and output["name"] == "stdout":
            pressed.append(output["text"])
            kernel.interrupt()

    done = kernel.run(STUBBORN, press)
    assert done.error["ename"] == "Interrupted"
    assert done.stream() == "ready\ngot SIGINT\ngot SIGTERM\n"
    assert "SIGKILL to all ranks" in done.stream("stderr")
    kernel.wait_for_no_process()


def test_a_killed_kernel_leaves_no_process(new_kernel):
    kernel = new_kernel()
    kernel.send(
        STUBBORN.replace(
            "told = []", 'import subprocess\nsubprocess.Popen(["sleep", "600"], start_new_session=True)\ntold = []'
        )
    )
    while "ready" not in kernel.next_text():
        pass
    kernel.wait_for_processes(7)  # taas-run's two, the ranks, what they started, and who removes the cell's files
    kernel.kill()
    kernel.wait_for_no_process()


def test_an_interrupt_before_the_launcher_runs_starts_nothing(kernel, project):
    kernel.run(
        "import os, signal, time\nclass Slow:\n    def __reduce__(self):\n"
        "        print('capturing', flush=True)\n        time.sleep(600)\nslow = Slow()"
    ).check()
    done = kernel.run(
        "%%taas --gpus 2\nslow",
        lambda kind, output: kind == "stream" and "capturing" in output["text"] and kernel.interrupt(),
    )
    assert done.error["ename"] == "KeyboardInterrupt"
    assert not (project / "taas-runs").exists()
