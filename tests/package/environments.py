"""A virtual environment as tests use it."""

import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TAAS_BUILD_FOLDER", ""))
HANG = 180
COMPILATION = 1500  # seconds, for the launcher on two cores


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

    def run(self, *command: object, **variables: str) -> subprocess.CompletedProcess:
        """Runs in the environment's folder without a variable of ours, with the system's PATH: nothing is activated."""
        return subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            timeout=HANG,
            cwd=self.root,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.root), **variables},
        )

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
        return {
            str(path.relative_to(self.root))
            for path in self.root.rglob("*")
            if not path.is_dir() and path.suffix != ".pyc"
        }
