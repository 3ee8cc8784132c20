"""What a script defines arrives in another process as in a fork. Run as a program, this file is such a process."""

import functools
import subprocess
import sys
import threading
import weakref

import pytest
from taas.code import pickling

SCRIPT = """
import functools, threading

@functools.lru_cache(maxsize=7, typed=True)
def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)

class Shapes:
    def __init__(self):
        self.locks = [threading.Lock(), threading.RLock(), threading.Condition(), threading.Event()]

    @functools.cached_property
    def own(self):
        return Shapes, fibonacci(20)

    @functools.lru_cache
    def area(self, side):
        return side * fibonacci(4)

    @functools.singledispatchmethod
    def name(self, value):
        return "a thing"

    @name.register
    def _(self, value: int):
        return "a number"

shapes = Shapes()
shapes.name(1), fibonacci(9)
"""


def look(shapes):
    """What must be the same everywhere."""
    kind, value = shapes.own
    parameters = kind.own.func.__globals__["fibonacci"].cache_parameters()
    with shapes.locks[0], shapes.locks[1], shapes.locks[1], shapes.locks[2]:
        return (
            kind is type(shapes),
            value,
            shapes.area(3),
            shapes.name(2),
            shapes.name(""),
            shapes.locks[3].is_set(),
            parameters,
        )


def test_a_script_arrives_whole(monkeypatch):
    script = type(sys)("__main__")
    monkeypatch.setitem(sys.modules, "__main__", script)
    exec(SCRIPT, vars(script))
    sent = pickling.by_value(script.shapes)
    there = subprocess.run([sys.executable, __file__], input=sent, capture_output=True, check=True).stdout
    assert there.decode().strip() == repr(look(script.shapes))


@functools.lru_cache
def importable():
    pass


def test_what_can_be_imported_goes_by_its_name():
    assert pickling.load(pickling.by_value(importable)) is importable


def test_caches_of_what_has_no_name_begin_empty():
    counted = functools.lru_cache(maxsize=3)(functools.partial(int, "7"))
    assert counted() == 7
    arrived = pickling.load(pickling.by_value(counted))
    assert (
        arrived.cache_info().currsize == 0
        and arrived.cache_parameters() == counted.cache_parameters()
        and arrived() == 7
    )


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock])
def test_locks_that_are_held_are_refused(make):
    lock = make()
    with lock, pytest.raises(pickling.Unpicklable, match="a lock that is held"):
        pickling.by_value(lock)


def test_weak_references_to_what_may_not_arrive_are_refused():
    key = threading.Event()
    with pytest.raises(pickling.Unpicklable, match="weak references"):
        pickling.by_value(weakref.WeakKeyDictionary({key: 1}))


if __name__ == "__main__":
    print(look(pickling.load(sys.stdin.buffer.read())))
