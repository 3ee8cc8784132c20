"""scripts/release, and the list of changes that it ends a section of."""

import re
import shutil
import subprocess

import pytest

from conftest import DEADLINE_SECONDS, ROOT

CHANGES = ROOT / "CHANGELOG.md"
VERSIONS = {
    "CMakeLists.txt": r"project\(taas-run VERSION ([0-9.]+)",
    "include/taas/version.hpp": r'TAAS_VERSION "(.*)"',
    "scripts/conda/recipe.yaml": r'(?m)^  version: "(.*)"',
}


def version_in(folder, path: str) -> str:
    found = re.search(VERSIONS[path], (folder / path).read_text())
    assert found, path
    return found[1]


def headings(text: str) -> list[str]:
    return re.findall(r"(?m)^## (.*)$", text)


def git(folder, *words) -> str:
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def clone(tmp_path):
    """A repository of the files that a release changes, with a remote to push to."""
    folder = tmp_path / "clone"
    for path in [*VERSIONS, "CHANGELOG.md", "scripts/release"]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "remote"], check=True)
    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    for name, value in {
        "user.name": "somebody",
        "user.email": "somebody@example.org",
        "remote.origin.url": str(tmp_path / "remote"),
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        "commit.gpgsign": "false",
        "tag.gpgsign": "false",
    }.items():
        git(folder, "config", name, value)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "before")
    git(folder, "push", "-q", "-u", "origin", "main")
    return folder


def release(clone, *words) -> subprocess.CompletedProcess:
    return subprocess.run(
        [clone / "scripts/release", *words], cwd=clone.parent, capture_output=True, text=True, timeout=DEADLINE_SECONDS
    )


def test_a_release_numbers_its_changes_and_has_a_tag(clone, tmp_path):
    done = release(clone, "10.2.34")
    assert done.returncode == 0, done.stderr
    assert {version_in(clone, path) for path in VERSIONS} == {"10.2.34"}
    header = (clone / "include/taas/version.hpp").read_text()
    assert re.findall(r"_(?:MAJOR|MINOR|PATCH) (.*)", header) == ["10", "2", "34"]
    before, after = CHANGES.read_text(), (clone / "CHANGELOG.md").read_text()
    assert re.search(r"\n## Unreleased\n\n## 10[.]2[.]34, \d{4}-\d\d-\d\d\n", after)
    assert headings(after)[2:] == headings(before)[1:]
    assert git(clone, "status", "--short") == "" and git(tmp_path / "remote", "tag") == ""
    git(clone, "push", "-q", "--follow-tags")
    assert git(tmp_path / "remote", "rev-parse", "v10.2.34^{commit}") == git(clone, "rev-parse", "HEAD")


def test_what_cannot_be_released_changes_nothing(clone):
    """Each in one line, with the way out."""
    assert release(clone, "10.2.34").returncode == 0
    cases = {
        (): "is no version: name one as 0.2.0",
        ("v1.2.3",): "'v1.2.3' is no version",
        ("1.2",): "'1.2' is no version",
        ("10.2.34",): "v10.2.34 is a tag already",
        ("10.2.35",): 'nothing is under "Unreleased"',
    }
    head = git(clone, "rev-parse", "HEAD")
    for words, said in cases.items():
        done = release(clone, *words)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done
    (clone / "CMakeLists.txt").write_text("")
    assert "not committed" in release(clone, "10.2.35").stderr
    assert git(clone, "rev-parse", "HEAD") == head and git(clone, "tag").split() == ["v10.2.34"]
