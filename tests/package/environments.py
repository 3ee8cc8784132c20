"""A virtual environment as tests use it."""

import os
import pathlib
import shlex
import subprocess
import sys
import venv
from importlib import metadata
from typing import Iterable

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TAAS_BUILD_FOLDER", ""))
HANG = 600


# What ./scripts/quickstart installs, beside the build that it links into the environment.
QUICKSTART = [line for name in ("requirements.txt", "requirements-package.in")
              for line in (SOURCE / "scripts" / name).read_text().splitlines() if not line.startswith("#")]


def requirements_of(line: str) -> list[str]:
    """Of a line `pip install …`, whose only option may be a file of constraints in this source."""
    words = shlex.split(line, comments=True)
    assert words[:2] == ["pip", "install"], line
    if words[2] == "-c":
        assert (SOURCE / words[3]).is_file(), line
        del words[2:4]
    assert len(words) > 2 and not any(word.startswith("-") for word in words), line
    return words[2:]


class NotInstalled(Exception):
    """A distribution that the interpreter that runs the tests does not have."""


class Environment:
    def __init__(self, root: pathlib.Path, dependencies: pathlib.Path) -> None:
        self.root = root
        self.bin = root / "bin"
        (self.site,) = root.glob("lib/python3*/site-packages")
        self._dependencies = dependencies

    def pip(self, *arguments: object) -> str:
        """pip of the interpreter that runs the tests, for this environment. Nothing is fetched."""
        command = [sys.executable, "-m", "pip", "--python", self.bin / "python", *arguments]
        if arguments[0] == "install":
            command += ["--no-index", "--find-links", self._dependencies]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def borrow(self, *requirements: str) -> None:
        """Installs these and what they need, as links to what the interpreter that runs the tests has. Raises NotInstalled."""
        folder = self.root / "borrowed"
        folder.mkdir(exist_ok=True)
        (self.site / "borrowed.pth").write_text(str(folder))
        for distribution in self._needed(requirements):
            for name in {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}:
                if not (folder / name).exists():
                    (folder / name).symlink_to(pathlib.Path(str(distribution.locate_file(name))))

    def _needed(self, requirements: Iterable[str]) -> Iterable[metadata.Distribution]:
        """taas-run itself has to be installed already; only what it needs is borrowed."""
        waiting, seen = [Requirement(text) for text in requirements], set()
        while waiting:
            wanted = waiting.pop()
            key = canonicalize_name(wanted.name), frozenset(wanted.extras)
            if key in seen:
                continue
            seen.add(key)
            own = key[0] == "taas-run"
            found = next(iter(metadata.distributions(name=key[0], path=[str(self.site)] if own else sys.path)), None)
            if found is None:
                raise NotInstalled(wanted.name)
            if not own:
                yield found
            for need in map(Requirement, found.requires or []):
                if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in wanted.extras | {""}):
                    waiting.append(need)

    def run(self, *command: object, folder: pathlib.Path | None = None, **variables: str) -> subprocess.CompletedProcess:
        """Runs in the environment's folder without a variable of ours, with the system's PATH: nothing is activated."""
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=HANG, cwd=folder or self.root,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(self.root), **variables})

    def activated(self) -> dict[str, str]:
        """What a shell has in which it is active."""
        return {"VIRTUAL_ENV": str(self.root), "PATH": f"{self.bin}:/usr/bin:/bin"}

    def python(self, code: str, **variables: str) -> subprocess.CompletedProcess:
        return self.run(self.bin / "python", "-c", code, **variables)

    def launch(self, *arguments: object, **variables: str) -> subprocess.CompletedProcess:
        return self.run(self.bin / "taas-run", *arguments, **variables)

    def script(self, text: str) -> pathlib.Path:
        path = self.root / "script.py"
        path.write_text(text)
        return path

    def files(self) -> set[str]:
        """All files in it, but compiled modules. (pip leaves folders behind.)"""
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir() and path.suffix != ".pyc"}


def like_quickstart(root: pathlib.Path, *requirements: str) -> Environment:
    """A new environment as ./scripts/quickstart makes it, with further requirements. What is not installed here is a skip."""
    venv.create(root, with_pip=False, symlinks=True)
    environment = Environment(root, dependencies=root)
    try:
        environment.borrow(*QUICKSTART)
        linked = environment.run(environment.bin / "python", SOURCE / "scripts/lib/link_build.py", BUILD, folder=SOURCE)
        assert linked.returncode == 0, linked.stderr
        environment.borrow(*requirements)
    except NotInstalled as missing:
        reason = f"not installed here, so that no environment can have it: {missing} (./scripts/test installs it)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return environment
