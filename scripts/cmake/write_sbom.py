"""Writes a bill of materials (CycloneDX 1.6, JSON) of taas-run: what other projects' code is in it, or linked with it.

    write_sbom.py OUTPUT VERSION shared|static HEADERS…     HEADERS: the folders of headers that the build looked into

A package of the distribution is named with the distribution's version, which says what was mended since the release;
others with the version in their headers, or without one where these do not say it. SOURCE_DATE_EPOCH is honoured.
"""

import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys
import uuid
from importlib import metadata
from typing import NamedTuple

from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL


class Part(NamedTuple):
    name: str
    license: str
    header: str
    version: str  # a pattern of the header: one group, or one each of the version's numbers
    headers_only: bool = False


MAJOR_MINOR_PATCH = r"define {0}MAJOR\s+(\d+)[\s\S]*?define {0}MINOR\s+(\d+)[\s\S]*?define {0}(?:PATCH|RELEASE)\s+(\d+)"
PARTS = [
    Part("boost", "BSL-1.0", "boost/version.hpp", r'define BOOST_LIB_VERSION "([\d_]+)"'),
    Part("cli11", "BSD-3-Clause", "CLI/Version.hpp", r'define CLI11_VERSION "([\d.]+)"', headers_only=True),
    Part("fmt", "MIT", "fmt/format.h", ""),
    Part("lz4", "BSD-2-Clause", "lz4.h", MAJOR_MINOR_PATCH.format("LZ4_VERSION_")),
    Part("openssl", "Apache-2.0", "openssl/opensslv.h", r'define OPENSSL_VERSION_STR "([^"]+)"'),
    Part("spdlog", "MIT", "spdlog/version.h", MAJOR_MINOR_PATCH.format("SPDLOG_VER_"), headers_only=True),
    Part("tomlplusplus", "MIT", "toml++/impl/version.h", MAJOR_MINOR_PATCH.format("TOML_LIB_"), headers_only=True),
    Part("xxhash", "BSD-2-Clause", "xxhash.h", MAJOR_MINOR_PATCH.format("XXH_VERSION_"), headers_only=True),
    Part("zstd", "BSD-3-Clause", "zstd.h", MAJOR_MINOR_PATCH.format("ZSTD_VERSION_")),
]


def version_in(part: Part, header: pathlib.Path) -> str | None:
    if part.name == "fmt":  # define FMT_VERSION 90100, in one of two headers
        texts = [path.read_text() for name in ("base.h", "core.h") if (path := header.parent / name).exists()]
        number = next(
            (int(found[1]) for text in texts if (found := re.search(r"define FMT_VERSION (\d+)", text))), None
        )
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}" if number else None
    found = re.search(part.version, header.read_text())
    return ".".join(found.groups()).replace("_", ".") if found else None


def distribution_package(header: pathlib.Path) -> PackageURL | None:
    """The distribution's source package that the header comes from; none where dpkg does not know it."""

    def ask(*command: str) -> str:
        try:
            done = subprocess.run(["dpkg-query", *command], capture_output=True, text=True)
        except FileNotFoundError:
            return ""
        return done.stdout if done.returncode == 0 else ""

    owner = ask("-S", str(header)).partition(": ")[0].split(",")[0]
    name, _, version = (
        ask("-W", "-f", "${source:Package} ${source:Version}", owner).partition(" ") if owner else ("", "", "")
    )
    if not version:
        return None
    release = platform.freedesktop_os_release()
    return PackageURL(
        "deb",
        release["ID"],
        name,
        version,
        {"arch": "source", "distro": f"{release['ID']}-{release.get('VERSION_ID', '')}"},
    )


def component(name: str, version: str | None, license: str, purl: PackageURL, how: str) -> Component:
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        purl=purl,
        bom_ref=str(purl),
        licenses=[LicenseExpression(license)],
        properties=[Property(name="taas-run:linked", value=how)],
    )


def found_parts(linking: str, folders: list[str]) -> list[Component]:
    found = []
    for part in PARTS:
        header = next((path for folder in folders if (path := pathlib.Path(folder, part.header)).exists()), None)
        version = version_in(part, header) if header else None
        if version is None:
            print(
                f"write_sbom.py: the version of {part.name} is not known: "
                f"{header or f'none of the folders has {part.header}'}",
                file=sys.stderr,
            )
        purl = (header and distribution_package(header)) or PackageURL("generic", None, part.name, version)
        how = "headers" if part.headers_only else linking
        found.append(component(part.name, version, part.license, purl, how))
    return found


def python_part(name: str, license: str, linking: str) -> list[Component]:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return []  # then there is no native module
    return [component(name, version, license, PackageURL("pypi", None, name, version), linking)]


def main() -> None:
    output, version, linking, *folders = sys.argv[1:]
    bom = Bom()
    bom.metadata.component = Component(
        name="taas-run",
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref="taas-run",
        licenses=[LicenseExpression("Apache-2.0")],
        purl=PackageURL("pypi", None, "taas-run", version),
    )
    tool = "cyclonedx-python-lib"
    bom.metadata.tools.components.add(Component(name=tool, version=metadata.version(tool), type=ComponentType.LIBRARY))
    parts = [*found_parts(linking, folders), *python_part("nanobind", "BSD-3-Clause AND MIT", "static")]
    for part in parts:
        bom.components.add(part)
    bom.register_dependency(bom.metadata.component, parts)
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp()))
    bom.metadata.timestamp = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    bom.serial_number = uuid.uuid5(
        uuid.NAMESPACE_URL, "\n".join([version, linking, *sorted(part.bom_ref.value or "" for part in parts)])
    )
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    pathlib.Path(output).write_text(text + "\n")


if __name__ == "__main__":
    main()
