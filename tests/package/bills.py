"""Bills of materials: valid by the own judgement of the library that writes them, and what they name."""

import json
import pathlib

import pytest


def parts_of(bill: pathlib.Path) -> dict[str, dict]:
    """The components by name, of a bill that is valid."""
    validation = pytest.importorskip(
        "cyclonedx.validation.json", reason="no cyclonedx-python-lib: scripts/requirements-test.txt has it"
    )
    from cyclonedx.schema import SchemaVersion

    text = bill.read_text()
    fault = validation.JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert fault is None, str(getattr(fault, "data", fault))[:2000]
    read = json.loads(text)
    assert read["metadata"]["component"]["name"] == "taas-run"
    parts = {part["name"]: part for part in read["components"]}
    assert all(part["purl"] and part["licenses"] for part in parts.values())
    (needs,) = [each["dependsOn"] for each in read["dependencies"] if each["ref"] == "taas-run"]
    assert sorted(needs) == sorted(part["bom-ref"] for part in parts.values())
    return parts


NAMES = {"boost", "cli11", "fmt", "lz4", "nanobind", "openssl", "spdlog", "tomlplusplus", "xxhash", "zstd"}
