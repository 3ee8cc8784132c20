import os
import subprocess

children = (
    subprocess.run(["env", "-0"], stdout=subprocess.PIPE, check=True)
    .stdout.decode(errors="surrogateescape")
    .split("\0")
)
print(
    [entry for entry in children if entry and entry.split("=")[0] not in ("PWD",)]
    == [f"{n}={v}" for n, v in os.environ.items()]
)
