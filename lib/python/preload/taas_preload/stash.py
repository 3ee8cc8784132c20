"""Modules that were imported beforehand, which a rank's program has not imported yet.

While modules are preloaded, a Recorder notes in order what the execution of each brings: other modules, and changes
elsewhere (filters of warnings, functions at exit, loggers, …). Stash.hide() then takes all of it back, so that nothing
of it can be seen. The finders of Python find what they would find without this; where that is the very file, or
built-in module, that was preloaded, importing it hands the stashed module over instead of executing the file, and
brings what its execution brought. So a file of the program that has the name of a library wins as usual, a library that
insists on being imported before torch can be, and hooks that a program registers see its imports.

This file is imported before anything is recorded: it uses nothing that a fresh interpreter has not imported already.
"""

import _frozen_importlib as bootstrap
import _frozen_importlib_external as external
import _thread
import builtins
import os
import sys

from .traces import Surface, Traces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Item = str | Callable[[], object]

_ASKED_ANEW = ("TMPDIR", "TEMP", "TMP")  # by tempfile in each rank
_FINDERS = (bootstrap.BuiltinImporter, bootstrap.FrozenImporter, external.PathFinder)


class _Plan:
    """All that the import of one module brings."""

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}
        self.changes: list[tuple[str, Callable[[], object]]] = []  # by the execution of which module
        self.asked: dict[str, str | None] = {}
        self.executed: set[str] = set()


class Stash:
    def __init__(self) -> None:
        self.brings: dict[str, dict[Item, None]] = {}
        """By module: modules that its execution asked for, by name, and changes to be made again, in order."""
        self.asked: dict[str, dict[str, str | None]] = {}
        """Environment variables that its execution asked for, and what it was answered first."""
        self.specs: dict[str, ModuleSpec] = {}
        self.recording = False  # changes are made by modules themselves
        self._modules: dict[str, ModuleType] = {}
        self._plans: dict[str, _Plan] = {}
        self._forgotten: set[str] = set()  # no attributes of their packages
        self._ordinary: list[object] = []  # finders that are there at the program's first line
        self._executed: list[set[str]] = [set()]  # modules that are imported, or were, as far as can be seen
        self._path: list[str | None] | None = None
        self._told: set[str] = set()
        self._lock = _thread.RLock()  # threads may import at the same time

    def find(self, name: str) -> "ModuleType | None":
        """A module that is imported, or that is stashed."""
        return sys.modules.get(name) or self._modules.get(name)

    def first(self, name: str, action: "Callable[[], object]") -> None:
        """Runs the action before anything that the import of the stashed module brings."""
        self.brings[name] = {action: None, **self.brings.get(name, {})}

    def then(self, name: str, action: "Callable[[], object]") -> None:
        """The same for the moment after all of that."""
        self.brings.setdefault(name, {})[action] = None

    def tell(self, what: str) -> None:
        """On stderr, once: what a fresh rank would do in another way."""
        if what not in self._told:
            self._told.add(what)
            print(f"taas-run: {what}: --preload none obeys it", file=sys.stderr, flush=True)

    def tell_of_variable(self, name: str) -> None:
        self.tell(f"the program has changed {name} after it was read by a preloaded module")

    def install(self) -> None:
        for finder in _FINDERS:
            finder.find_spec = classmethod(self._finding(finder.find_spec.__func__))  # type: ignore

    def hide(self, surface: Surface) -> None:
        """Makes everything look as on that surface, but for what the finders are asked for."""
        surface.restore()
        for name in [name for name in sys.modules if name not in surface.modules]:
            module = sys.modules.pop(name)
            if name.partition(".")[0] != __package__:
                self._modules[_copy(name)] = module
        self._executed = [set()]
        self._ordinary = list(sys.meta_path)

    def plan(self, names: list[str], start: "str | None") -> None:
        """Works out beforehand what imports of these modules bring. `start` is what Python puts first in sys.path."""
        self._path = [start, *sys.path]
        self._plans = {name: self._make_plan(name) for name in names}
        whole = tuple(f"{name}." for name in names)
        packages: dict[str, set[str]] = {}
        for name in self._modules:
            parent, _, own = name.rpartition(".")
            package = self.find(parent) if parent and not name.startswith(whole) else None
            if package is None:
                continue
            if parent not in packages:
                packages[parent] = self._make_plan(parent).executed
            if name not in packages[parent]:
                self._forget(own, package, name)

    def _forget(self, own: str, package: "ModuleType", name: str) -> None:
        """A package that does not import a module of its own has no such attribute until somebody does."""
        if vars(package).get(own) is self._modules[name]:
            delattr(package, own)
            self._forgotten.add(name)

    def _finding(self, original: "Callable[..., ModuleSpec | None]") -> "Callable[..., ModuleSpec | None]":
        def find_spec(
            cls: type, fullname: str, path: "Any" = None, target: "ModuleType | None" = None
        ) -> "ModuleSpec | None":
            spec = original(cls, fullname, path, target)
            just_came = target is None and self._just_came(fullname)
            if spec is not None and (self.has(fullname) or just_came) and _is_same(spec, self.specs.get(fullname)):
                self._hand_over(spec)
                if just_came:  # importlib takes the spec of a module that came while it was looked for
                    _set(sys.modules[fullname], "__spec__", spec)
            return spec

        find_spec.__qualname__, find_spec.__module__ = original.__qualname__, original.__module__
        return find_spec

    def has(self, name: str) -> bool:
        """Whether the module is stashed, and was not imported since."""
        return name in self._modules and not self._is_executed(name)

    def _just_came(self, name: str) -> bool:
        """Another thread has imported what brings it, since importlib began to look for it here."""
        return name in sys.modules and name in self.specs and name in bootstrap._module_locks  # type: ignore[attr-defined]

    def _is_executed(self, name: str) -> bool:
        return any(name in names for names in self._executed)

    def _hand_over(self, spec: "ModuleSpec") -> None:
        """Has importlib take the stashed module for a new one, and bring() run in place of its file."""
        name, loader = spec.name, spec.loader
        module = self._modules.get(name)
        if module is None:  # what leaves the stash is in sys.modules before
            module = sys.modules[name]
        own_spec = getattr(module, "__spec__", None)

        def execute(given: "ModuleType") -> None:
            if given is not module and isinstance(loader, external.FileLoader):  # somebody fills a module of his own
                type(loader).exec_module(loader, given)  # type: ignore[attr-defined]
                return
            _set(module, "__spec__", own_spec)
            self._forgotten.discard(name)  # importlib makes it an attribute itself
            self._bring(name)

        if not isinstance(loader, external.FileLoader):
            spec.loader = _HandOver()  # of built-in modules it is a class, of namespaces there is none
        _set(spec.loader, "create_module", lambda _: module)
        _set(spec.loader, "exec_module", execute)

    def _bring(self, name: str) -> None:
        if self._is_executed(name):
            return
        if self._is_watched():
            self._executed[0].add(name)
            self._compare(self.asked.get(name, {}))
            for item in self.brings.get(name, ()):
                self._import_watched(item) if isinstance(item, str) else item()
            return
        with self._lock:
            if self._is_executed(name):
                return
            plan = self._plans.pop(name, None) or self._make_plan(name)
            elsewhere = _being_imported()
            plan.executed -= elsewhere
            shadowed = self._admit(plan, elsewhere)
            changes = [
                change for owner, change in plan.changes if owner in plan.executed and not self._is_executed(owner)
            ]
            self._executed.append(plan.executed)
        for module in shadowed:
            self.tell(f"{module} was preloaded from another folder than the one that the program has put into sys.path")
        self._compare(plan.asked)
        for change in () if self.recording else changes:
            change()

    def _admit(self, plan: _Plan, elsewhere: set[str]) -> list[str]:
        """Puts the modules where programs see them. Returns those that the program would have from elsewhere."""
        shadowed = self._shadowed(plan.modules)
        for name in [*shadowed, *elsewhere]:
            plan.modules.pop(name, None)
        there = {name: sys.modules[name] for name in list(sys.modules) if name in plan.modules}
        sys.modules.update(plan.modules)
        sys.modules.update(there)
        for name in self._forgotten & plan.modules.keys():
            self._bind(name)
        self._modules = {name: module for name, module in self._modules.items() if name not in plan.modules}
        plan.modules.clear()  # Python's end is slower with modules that somebody still refers to
        return shadowed

    def _compare(self, asked: "dict[str, str | None]") -> None:
        for name, value in () if self.recording else asked.items():
            if os.environ.get(name) != value and name not in _ASKED_ANEW:
                self.tell_of_variable(name)

    def _shadowed(self, names: "Container[str]") -> list[str]:
        """Those that folders have as well which the program has put into sys.path in front of what was there."""
        found: list[str] = []
        for entry in sys.path:
            if self._path is None or entry in self._path[1:]:
                break
            if entry == self._path[0]:
                continue
            try:
                files = {file.partition(".")[0] for file in os.listdir(entry)}
            except OSError:
                continue
            for name in [name for name in files if name in names]:
                spec = external.PathFinder.find_spec(name, [entry])
                if spec is not None and spec.origin is not None and not _is_same(spec, self.specs.get(name)):
                    found.append(name)
        return found

    def _make_plan(self, name: str) -> _Plan:
        plan = _Plan()

        def visit(name: str) -> None:
            if name in plan.executed or self._is_executed(name):
                return
            plan.executed.add(name)
            for variable, value in self.asked.get(name, {}).items():
                plan.asked.setdefault(_copy(variable), value)
            visit(name.rpartition(".")[0])
            for item in self.brings.get(name, ()):
                if isinstance(item, str):
                    visit(item)
                else:
                    plan.changes.append((name, item))
            if name in self._modules:  # importlib, too, puts it last when it has been executed
                plan.modules[_copy(name)] = self._modules[name]

        visit(name)
        return plan

    def _bind(self, name: str) -> None:
        self._forgotten.discard(name)
        parent, _, own = name.rpartition(".")
        _set(self.find(parent), own, sys.modules[name])

    def _is_watched(self) -> bool:
        """The program has finders of its own, which expect to be asked for whatever Python's own might find."""
        last = sys.meta_path.index(external.PathFinder) if external.PathFinder in sys.meta_path else None
        return any(all(finder is not known for known in self._ordinary) for finder in sys.meta_path[:last])

    def _import_watched(self, name: str) -> None:
        """By the finders, one of which may wrap what hands the module over; but none may execute the file again."""
        parent = name.rpartition(".")[0]
        if parent:
            self._import_watched(parent)
        forgotten = name in self._forgotten
        if self.has(name):
            path, spec = getattr(sys.modules.get(parent), "__path__", None), None
            try:
                if name in self.specs:  # else a module has put it there by hand
                    spec = bootstrap._find_spec(name, path)  # type: ignore[attr-defined]
            except ImportError:
                return  # the program does not want it to be imported
            if spec is not None and _hands_over(spec.loader):
                bootstrap._load(spec)  # type: ignore[attr-defined]
            else:
                sys.modules[name] = self._modules[name]
            if forgotten:
                self._bind(name)
        self._bring(name)


def _being_imported() -> set[str]:
    """By other threads, each of which gets its module from here itself."""
    own = (None, _thread.get_ident())
    locks = [(name, reference()) for name, reference in list(bootstrap._module_locks.items())]  # type: ignore[attr-defined]
    return {name for name, lock in locks if lock is not None and lock.owner not in own}


def _copy(name: str) -> str:
    """In memory beside other copies: a rank that counts one more reference copies a page of memory."""
    return name.encode().decode()


class _HandOver:
    """A loader with no more than what it is given."""


def _is_same(found: "ModuleSpec", preloaded: "ModuleSpec | None") -> bool:
    if preloaded is None or found.origin != preloaded.origin:
        return False
    if found.origin is not None:
        return True
    return list(found.submodule_search_locations or ()) == list(preloaded.submodule_search_locations or ())


def _hands_over(loader: object) -> bool:
    inner: Iterable[object] = () if isinstance(loader, type) else getattr(loader, "__dict__", {}).values()
    return any("create_module" in getattr(each, "__dict__", {}) for each in (loader, *inner) if type(each) is not type)


def _set(owner: object, name: str, value: object) -> None:
    try:
        setattr(owner, name, value)
    except (AttributeError, TypeError):
        pass  # something else than a module may be in its place


class Recorder:
    """While it is entered, notes in the stash what the execution of each module brings."""

    def __init__(self, stash: Stash) -> None:
        self.traces = Traces(self.note)
        self.stash = stash
        self._running: list[str] = []  # modules that are being executed, the innermost last
        self._known = set(sys.modules)
        self._load = bootstrap._load_unlocked  # type: ignore[attr-defined]
        self._import = builtins.__import__

    def __enter__(self) -> "Recorder":
        self.stash.recording = True
        bootstrap._load_unlocked = self._watch_load  # type: ignore[attr-defined]
        builtins.__import__ = self._watch_import
        self.traces.watch_exits()
        return self

    def __exit__(self, *_: object) -> None:
        bootstrap._load_unlocked = self._load  # type: ignore[attr-defined]
        builtins.__import__ = self._import
        self.traces.end()
        self.stash.recording = False

    def note(self, item: "Item") -> None:
        """Of the module that is being executed."""
        if self._running:
            self.stash.brings[self._running[-1]][item] = None

    def note_asked(self, name: str, value: "str | None") -> None:
        """The same for a variable."""
        if self._running:
            self.stash.asked.setdefault(self._running[-1], {}).setdefault(name, value)

    def _watch_load(self, spec: "ModuleSpec") -> "Any":
        self._settle()
        self.note(spec.name)
        if self.stash.has(spec.name) and _hands_over(spec.loader):
            return self._load(spec)
        self.stash.specs[spec.name], self.stash.brings[spec.name] = spec, {}
        self._known.add(spec.name)
        self._running.append(spec.name)
        try:
            return self._load(spec)
        finally:
            self._settle()
            self._running.pop()

    def _watch_import(
        self, name: str, globals: "Any" = None, locals: "Any" = None, fromlist: "Any" = (), level: int = 0
    ) -> "ModuleType":
        module = self._import(name, globals, locals, fromlist, level)
        if self._running:
            brought = self.stash.brings[self._running[-1]]
            if level:
                package = bootstrap._calc___package__(globals)  # type: ignore[attr-defined]
                name = bootstrap._resolve_name(name, package, level)  # type: ignore[attr-defined]
            brought[name] = None
            if fromlist and hasattr(module, "__path__"):
                for item in fromlist:
                    if (inner := f"{name}.{item}") in sys.modules:
                        brought[inner] = None
        return module

    def _settle(self) -> None:
        """What was changed since the last time is the work of the module that is being executed."""
        by_hand = []
        for name in reversed(sys.modules):
            if name not in self._known:
                by_hand.append(name)
            elif name not in self._running[-1:]:
                break
        for name in reversed(by_hand):
            self._known.add(name)
            self.note(name)
        self.traces.note_changes(last=len(self._running) == 1)
