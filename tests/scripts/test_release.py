"""scripts/release, and the list of changes that it ends a section of."""

import re
import shutil
import subprocess

import pytest

from conftest import ROOT

CHANGES = ROOT / "CHANGELOG.md"
VERSIONS = {"CMakeLists.txt": r"project\(taas-run VERSION ([0-9.]+)", "include/taas/version.hpp": r'TAAS_VERSION "(.*)"',
            "scripts/conda/recipe.yaml": r'(?m)^  version: "(.*)"'}
KINDS = {"Added", "Changed", "Fixed", "Security", "Removed"}


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
    for name, value in {"user.name": "somebody", "user.email": "somebody@example.org", "remote.origin.url": str(tmp_path / "remote"),
                        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*", "commit.gpgsign": "false",
                        "tag.gpgsign": "false"}.items():
        git(folder, "config", name, value)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "before")
    git(folder, "push", "-q", "-u", "origin", "main")
    return folder


def release(clone, *words) -> subprocess.CompletedProcess:
    return subprocess.run([clone / "scripts/release", *words], cwd=clone.parent, capture_output=True, text=True, timeout=300)


def test_the_version_is_the_same_everywhere():
    assert len({version_in(ROOT, path) for path in VERSIONS}) == 1


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
    cases = {(): "is no version: name one as 0.2.0", ("v1.2.3",): "'v1.2.3' is no version", ("1.2",): "'1.2' is no version",
             ("10.2.34",): "v10.2.34 is a tag already", ("10.2.35",): 'nothing is under "Unreleased"'}
    head = git(clone, "rev-parse", "HEAD")
    for words, said in cases.items():
        done = release(clone, *words)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done
    (clone / "CMakeLists.txt").write_text("")
    assert "not committed" in release(clone, "10.2.35").stderr
    assert git(clone, "rev-parse", "HEAD") == head and git(clone, "tag").split() == ["v10.2.34"]


def test_changes_have_a_section_for_each_release_and_what_is_to_come():
    first, *releases = headings(CHANGES.read_text())
    assert first == "Unreleased"
    numbers = [tuple(map(int, re.fullmatch(r"(\d+)\.(\d+)\.(\d+), \d{4}-\d\d-\d\d", release).groups())) for release in releases]
    assert numbers == sorted(numbers, reverse=True)
    assert set(re.findall(r"(?m)^### (.*)$", CHANGES.read_text())) <= KINDS
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone: it has no tags")
    tags = {tuple(map(int, tag[1:].split("."))) for tag in git(ROOT, "tag", "--list", "v[0-9]*.[0-9]*.[0-9]*").split()}
    assert tags <= set(numbers)


@pytest.mark.parametrize("page", [CHANGES, ROOT / "SECURITY.md"], ids=lambda page: page.name)
def test_what_the_pages_beside_the_readme_name_is_there(page):
    """Files, and headings of pages."""
    assert page.name in (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)#]+)(?:#([^)]*))?\)", page.read_text())
    assert links
    for path, heading in links:
        there = ROOT / path
        assert there.exists(), path
        titles = {re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.*)$", there.read_text())}
        assert not heading or heading in titles, f"{path}#{heading}"
