"""What ELF files say of themselves: where they look for libraries, and how they were hardened."""

import pathlib

import pytest

elffile = pytest.importorskip(
    "elftools.elf.elffile", reason="no pyelftools here: scripts/requirements-test.txt brings it"
)

ENDBR64 = b"\xf3\x0f\x1e\xfa"
PF_X = 1
DF_BIND_NOW, DF_TEXTREL, DF_1_NOW = 0x8, 0x4, 0x1


def elf_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Programs and libraries in it; no objects, and each once."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.suffix in (".o", ".a", ".gch"):
            continue
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                found.append(path)
    return found


class Binary:
    def __init__(self, path: pathlib.Path) -> None:
        with open(path, "rb") as file:
            elf = elffile.ELFFile(file)
            self.machine = elf["e_machine"]
            self.type = elf["e_type"]
            self.segments = {segment["p_type"]: segment["p_flags"] for segment in elf.iter_segments()}
            self.code = b"".join(segment.data() for segment in elf.iter_segments() if segment["p_flags"] & PF_X)
            dynamic = elf.get_section_by_name(".dynamic")
            self.tags = [(tag.entry.d_tag, tag) for tag in dynamic.iter_tags()] if dynamic else []
            symbols = elf.get_section_by_name(".dynsym")
            self.imports = (
                {symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"}
                if symbols
                else set()
            )

    def run_path(self) -> list[str]:
        paths = [tag.runpath for name, tag in self.tags if name == "DT_RUNPATH"] + [
            tag.rpath for name, tag in self.tags if name == "DT_RPATH"
        ]
        return [element for path in paths for element in path.split(":")]

    def needed(self) -> list[str]:
        return [tag.needed for name, tag in self.tags if name == "DT_NEEDED"]

    def flags(self, name: str) -> int:
        return next((tag.entry.d_val for found, tag in self.tags if found == name), 0)


def search_faults(folder: pathlib.Path) -> dict[str, list[str]]:
    """By file, where it looks for libraries in a folder that depends on who calls it: "" is the current one."""
    faults = {}
    for path in elf_files(folder):
        binary = Binary(path)
        wrong = [element for element in binary.run_path() if not element.startswith(("/", "$ORIGIN"))]
        wrong += [name for name in binary.needed() if "/" in name and not name.startswith("/")]
        if wrong:
            faults[str(path.relative_to(folder))] = wrong
    return faults


def linking_faults(folder: pathlib.Path) -> dict[str, list[str]]:
    """By file, what is missing of: unknown addresses, tables that are read-only once it runs, data that never runs."""
    faults = {}
    for path in elf_files(folder):
        binary = Binary(path)
        present = {
            "position independent": binary.type == "ET_DYN" and not binary.flags("DT_FLAGS") & DF_TEXTREL,
            "relro": "PT_GNU_RELRO" in binary.segments,
            "bound at once": bool(binary.flags("DT_FLAGS") & DF_BIND_NOW or binary.flags("DT_FLAGS_1") & DF_1_NOW),
            "no executable stack": not binary.segments.get("PT_GNU_STACK", PF_X) & PF_X,
        }
        if missing := [name for name, there in present.items() if not there]:
            faults[str(path.relative_to(folder))] = missing
    return faults


def compiling_faults(path: pathlib.Path, optimised: bool) -> list[str]:
    """What a binary that reads from a network lacks: checks of the stack and of buffers, marks where jumps may land."""
    binary = Binary(path)
    present = {
        "checks of the stack": "__stack_chk_fail" in binary.imports,
        "checks of buffers": not optimised or any(name.endswith("_chk") for name in binary.imports),
        "marks for jumps": binary.machine != "EM_X86_64" or binary.code.count(ENDBR64) > 500,
    }
    return [name for name, there in present.items() if not there]
