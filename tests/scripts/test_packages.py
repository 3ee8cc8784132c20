"""What the scripts install: packages of the distribution when it is their turn, and packages of Python as they are known."""

import re

import pytest

from conftest import ROOT

APT = """#!/bin/sh
echo "$@" >>"$HERE/calls"
echo "E: $ERROR" >&2
[ "$(wc -l <"$HERE/calls")" -ge "$TURN" ]
"""
LOCK = "Could not get lock /var/lib/apt/lists/lock. It is held by process 4711 (unattended-upgr)"


@pytest.fixture
def apt(shell, tmp_path):
    """apt(error, turn): what install_test_packages made of an apt-get that succeeds at that call, and all calls."""
    programs = {"apt-get": APT, "sudo": '#!/bin/sh\n[ "$1" = -v ] || exec "$@"\n', "sleep": "#!/bin/sh\n",
                "dpkg-query": "#!/bin/sh\n"}
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)

    def run(error: str, turn: int):
        done = shell("apt install -y zsh", PATH=f"{tmp_path}/bin:/usr/bin:/bin", HERE=str(tmp_path), ERROR=error, TURN=str(turn))
        return done, (tmp_path / "calls").read_text().splitlines()

    return run


def test_apt_waits_while_the_machine_upgrades_itself(apt):
    done, calls = apt(LOCK, 4)
    assert done.returncode == 0 and len(calls) == 4
    assert all("DPkg::Lock::Timeout=" in call and call.endswith("install -y zsh") for call in calls)


def test_apt_does_not_wait_for_ever(apt):
    done, calls = apt(LOCK, 10**6)
    assert done.returncode == 1 and 200 < len(calls) < 400
    assert "unattended-upgr" in done.stderr


def test_what_apt_cannot_do_is_not_tried_again(apt):
    done, calls = apt("Unable to locate package zsh", 2)
    assert done.returncode == 1 and len(calls) == 1
    assert "Unable to locate package" in done.stderr


def test_no_script_calls_apt_get_by_itself():
    scripts = [path for folder in ("scripts", ".ci") for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix in ("", ".sh")]
    assert len(scripts) > 10
    calls = [f"{path.name}: {line}" for path in scripts for line in path.read_text().splitlines()
             if re.search(r"\bapt-get\b[^;&|]*\b(update|install)\b", line) and not re.search(r'["(]apt-get install [a-z-]+["),]|^\s*#', line)]
    assert calls == []


WITHOUT_HASHES = {"requirements.txt", "requirements-frameworks.txt", "requirements-pipelines.txt"}


def requirements(text: str) -> dict[str, str]:
    return {name.lower().replace("_", "-"): version for name, version in re.findall(r"^([\w.-]+)(?:\[.*\])?==([\w.+]+)", text, re.MULTILINE)}


@pytest.mark.parametrize("path", sorted((ROOT / "scripts").glob("requirements*.txt")), ids=lambda path: path.name)
def test_every_requirement_is_pinned_and_has_hashes_or_says_why_not(path):
    text = path.read_text()
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if entry and not entry.startswith("#")]
    assert entries and all("==" in entry for entry in entries)
    if path.name in WITHOUT_HASHES:
        assert text.startswith("# Without hashes: ")
        return
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    wanted = requirements(path.with_suffix(".in").read_text())
    assert wanted and wanted.items() <= requirements(text).items(), "run ./scripts/pin-requirements"


def test_requirements_with_hashes_are_installed_with_them():
    for path in (ROOT / "scripts/lib/python.sh", ROOT / "scripts/test", ROOT / "scripts/build-wheels"):
        for command in re.findall(r"pip install (.*(?:\\\n.*)?)", path.read_text()):
            names = re.findall(r"scripts/(requirements\S*[.]txt)", command)
            if set(names) - WITHOUT_HASHES:
                assert "--require-hashes" in command, command
