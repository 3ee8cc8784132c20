"""What the tests of a run share: its workers import what lies beside conftest.py; and the events of one kind."""

import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[1]
CONTRACT = FOLDER.parent / "contract"  # what the launcher's own tests write and read


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ":".join([*sys.path, str(FOLDER)]))


def of_kind(run, kind):
    return [event for event in run.events() if event["kind"] == kind]
