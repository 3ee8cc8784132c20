"""A program of many small scripts, each of which tells what it can see of its interpreter.

program.py FOLDER [WORD ...]: runs FOLDER's script number $CASE; else by its generation (folder `ends`), else by its
rank. The text is run as this program's own, so that it sees what any program would see.
"""

import os
import sys

_folder = sys.argv[1]
_number = os.environ.get("CASE") or os.environ["TORCHELASTIC_RESTART_COUNT" if _folder.endswith("ends") else "RANK"]
_scripts = sorted(name for name in os.listdir(_folder) if name.endswith(".py"))
_path = os.path.join(_folder, _scripts[int(_number)])

with open(_path, encoding="utf-8") as _file:
    exec(compile(_file.read(), _path, "exec"))

if False:
    import torch  # noqa: F401  # so that --preload auto takes it for a training program
