"""Runs with data workers whose program is a stand-in (data_worker.py): what they say of themselves."""

import json
import pathlib

import pytest

from waiting import wait_until

STAND_IN = pathlib.Path(__file__).with_name("data_worker.py")
RANK = """
import json, os, socket, sys, time
names = ("TAAS_ROLE", "TAAS_DATA_PLAN", "TAAS_EVENTS", "PYTHONPATH")
with open(os.path.join(os.environ["SEEN"], "rank-" + os.environ["RANK"]), "w") as file:
    json.dump({"pid": os.getpid(), "environment": {n: os.environ[n] for n in names if n in os.environ}}, file)
"""
STAY = RANK + "time.sleep(1000)\n"


class Data:
    """One run with data workers: what they said of themselves."""

    def __init__(self, launcher):
        self.launcher = launcher
        self.seen = launcher.folder / "seen"
        self.seen.mkdir()
        package = launcher.folder / "packages" / "taas"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "worker.py").write_text(STAND_IN.read_text() + "\nrun()\n")
        self.environment = {"SEEN": str(self.seen), "PYTHONPATH": str(package.parent)}

    def start(self, *arguments, env=None, **options):
        return self.launcher.start(*arguments, env={**self.environment, **(env or {})}, **options)

    def run(self, *arguments, env=None, **options):
        return self.launcher.run(*arguments, env={**self.environment, **(env or {})}, **options)

    def about(self, name):
        return json.loads((self.seen / name).read_text())

    def wait_for(self, *names):
        wait_until(lambda: all((self.seen / name).exists() for name in names), f"{names} are there")
        return [self.wait_whole(name) for name in names]

    def wait_whole(self, name):
        wait_until(lambda: self.read(name) is not None, f"{name} is whole")
        return self.read(name)

    def read(self, name):
        try:
            return self.about(name)
        except ValueError:
            return None

    def plan(self, about):
        return json.loads(pathlib.Path(about["environment"]["TAAS_DATA_PLAN"]).read_text())


@pytest.fixture
def data(launcher):
    return Data(launcher)


def journal(data):
    return (data.launcher.run_folder() / "journal.jsonl").read_text().splitlines()
