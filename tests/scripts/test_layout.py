"""The rooms of lib and apps, and the documents about them: what docs/ARCHITECTURE.md promises of both."""

import ast
import collections
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = [*ROOT.glob("lib/**/*.?pp"), *ROOT.glob("apps/**/*.?pp")]
DOCUMENTS = [*ROOT.glob("*.md"), *(page for page in ROOT.glob("docs/*.md") if page.name != "flags.md")]
MOST_FILES = 25
COLUMNS = 100
RETIRED = {"Way": "LaunchMode", "NodeHouse": "NodePool", "RunLoop": "CoordinatorLoop", "RoomBell": "MemoryWaiters", "Look": "ClaimScope",
           "LowWater": "ReceiveLowWatermark", "Inbox": "FrameReader", "Strangers": "PendingHandshakes", "PreloadedOrder": "ForkRequest",
           "DataBoard": "DataProgressView", "foresight": "sampler_prediction", "anticipation": "prefetch", "Trust": "PredictionBudget"}


def includes():
    """By folder, the other folders that its files include."""
    found = collections.defaultdict(set)
    for source in SOURCES:
        for name in re.findall(r'#include "([^"]+)"', source.read_text()):
            there = next((base / name for base in (ROOT / "lib", source.parent, ROOT / "apps/taas-run") if (base / name).exists()), None)
            if there and there.parent != source.parent:
                found[source.parent].add(there.resolve().parent)
    return found


def circle(graph):
    """The folders of one circle, or nothing."""
    done = set()

    def walk(folder, way):
        if folder in way:
            return way[way.index(folder):]
        if folder in done:
            return []
        found = next((circle for other in sorted(graph.get(folder, ())) if (circle := walk(other, [*way, folder]))), [])
        done.add(folder)
        return found

    return next((found for folder in sorted(graph) if (found := walk(folder, []))), [])


def python_imports():
    """By module of the package `taas`, the other ones that it imports, inside functions too. The package itself does not count:
    `from . import _native` asks for a part of it."""
    package = ROOT / "lib/python/taas"
    modules = {".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): file
               for file in package.rglob("*.py")}
    found = collections.defaultdict(set)
    for name, file in modules.items():
        inside = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                home = ".".join([*inside[:len(inside) + 1 - node.level], *([node.module] if node.module else [])])
                found[name] |= {there if (there := f"{home}.{each.name}") in modules else home for each in node.names}
    return {name: others - {name, "taas"} for name, others in found.items()}


def test_modules_of_python_import_one_way():
    imports = python_imports()
    assert sum(map(len, imports.values())) > 200
    assert circle(imports) == []


def test_rooms_of_python_import_one_way():
    """The public surface is above all rooms; a room of the notebook is one by itself."""
    rooms = collections.defaultdict(set)
    for name, others in python_imports().items():
        here = name.rpartition(".")[0]
        rooms[here] |= {there for other in others if (there := other.rpartition(".")[0]) not in (here, "taas")}
    assert [room for room in circle(rooms) if not room.startswith("taas.notebook")] == []


def test_a_circle_is_found():
    assert circle({1: {2}, 2: {3}, 3: {2}}) == [2, 3]


def test_includes_between_rooms_go_one_way():
    assert len(includes()) > 30
    assert [str(folder.relative_to(ROOT)) for folder in circle(includes())] == []


def test_no_room_of_sources_is_crowded():
    modules = [file for file in ROOT.glob("lib/python/**/*.py") if file.name not in ("__init__.py", "__main__.py")]
    counts = collections.Counter(source.parent for source in [*SOURCES, *ROOT.glob("lib/**/CMakeLists.txt"), *modules])
    assert {str(room.relative_to(ROOT)): count for room, count in counts.items() if count > MOST_FILES} == {}


def test_each_layer_is_in_the_architecture():
    layers = {folder.name for folder in (ROOT / "lib").iterdir() if folder.is_dir()}
    told = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert sorted(layers) == sorted(told)


def test_each_word_of_the_glossary_is_there_once():
    glossary = (ROOT / "docs/ARCHITECTURE.md").read_text().partition("\n## Words\n")[2].partition("\n## ")[0]
    words = re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE)[1:]
    assert len(words) > 20
    assert [word for word, count in collections.Counter(words).items() if count > 1] == []


def test_names_that_were_given_up_stay_so():
    names = re.compile(r"\b(" + "|".join(RETIRED) + r")\b")
    found = {str(source.relative_to(ROOT)): f"{old.group()}: say {RETIRED[old.group()]}" for source in [*SOURCES, *ROOT.glob("lib/**/*.py")]
             if (old := names.search(source.read_text()))}
    assert found == {}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_lines_of_documents_are_short(page):
    lines = page.read_text().splitlines()
    assert [(number, line) for number, line in enumerate(lines, 1) if len(line) > COLUMNS and "http" not in line] == []
