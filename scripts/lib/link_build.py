"""Makes a build folder an installed taas-run for the interpreter that runs this: what is built is what is imported.

    cd <source folder> && python scripts/lib/link_build.py BUILD

As after `pip install -e`: pip lists it, installs its extras (`pip install "taas-run[notebook]"`), and removes it when a wheel takes
its place. Nothing is copied, so that the next build is there at once. A path file names the folder of the package: a link to the
package itself would let pip write another distribution's files into the build.
"""

import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import scikit_build_core.build

SITE = pathlib.Path(sysconfig.get_path("purelib"))
PROGRAM = pathlib.Path(sysconfig.get_path("scripts"), "taas-run")
PATH_FILE = "__editable__.taas_run.pth"  # read before borrowed_torch.pth, whose folder may hold another taas-run
INSTALLER = "link_build.py"


def remove_former() -> None:
    """What is installed under this name: an earlier link, or a wheel."""
    for found in importlib.metadata.distributions(name="taas-run", path=[str(SITE)]):
        if found.read_text("INSTALLER") == INSTALLER:
            shutil.rmtree(SITE / f"taas_run-{found.version}.dist-info")
        else:
            subprocess.run([sys.executable, "-m", "pip", "uninstall", "--yes", "taas-run"], check=True)


def link(build: pathlib.Path) -> None:
    remove_former()
    (SITE / PATH_FILE).write_bytes(os.fsencode(build / "python") + b"\n")
    PROGRAM.unlink(missing_ok=True)
    PROGRAM.symlink_to(build / "bin" / "taas-run")
    metadata = SITE / scikit_build_core.build.prepare_metadata_for_build_wheel(str(SITE))
    (metadata / "INSTALLER").write_text(INSTALLER)
    (metadata / "direct_url.json").write_text(json.dumps({"url": pathlib.Path.cwd().as_uri(), "dir_info": {"editable": True}}))
    files = [SITE / PATH_FILE, PROGRAM, *(path for path in metadata.rglob("*") if path.is_file()), metadata / "RECORD"]
    (metadata / "RECORD").write_text("".join(f"{os.path.relpath(path, SITE)},,\n" for path in files))


if __name__ == "__main__":
    link(pathlib.Path(sys.argv[1]))
