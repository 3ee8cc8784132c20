import subprocess
import sys

print(
    subprocess.run(
        [sys.executable, "-c", "import sys; print(sys.path, 'torch' in sys.modules, 'sitecustomize' in sys.modules)"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
)
