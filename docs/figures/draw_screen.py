"""Draws what a terminal shows after these commands, as a picture for the docs: `draw_screen.py FILE.svg COMMAND…`.

The commands are typed into a shell in a folder of its own, in a real pseudo terminal, one after the other; files of --with are there.
The picture has the screen's text and colours, no fonts of its own, and is light or dark as the reader's browser is.
"""

import argparse
import html
import os
import pathlib
import pty
import select
import shutil
import struct
import subprocess
import tempfile
import termios
import time
from fcntl import ioctl

import pyte

PROMPT = "$ "
PATIENCE = 60  # seconds for a command
WIDTH, HEIGHT, MARGIN = 8.43, 18, 14  # of a letter at 14 pixels, of a line, around all
COLOURS = {"red": "#d1242f", "green": "#1a7f37", "brown": "#9a6700", "blue": "#0969da", "magenta": "#8250df", "cyan": "#1b7c83"}
DARK = {"red": "#ff7b72", "green": "#7ee787", "brown": "#f2cc60", "blue": "#79c0ff", "magenta": "#d2a8ff", "cyan": "#76e3ea"}


class Shell:
    def __init__(self, folder: pathlib.Path, columns: int, rows: int) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = os.environ | {"PS1": PROMPT, "TERM": "xterm-256color", "HISTFILE": "", "BASH_SILENCE_DEPRECATION_WARNING": "1"}
        self._shell = subprocess.Popen(["bash", "--norc", "--noprofile"], cwd=folder, env=environment, stdin=slave, stdout=slave,
                                       stderr=slave, start_new_session=True, preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self._wait_for_prompt()

    def type(self, command: str) -> None:
        os.write(self._master, command.encode() + b"\n")
        self._read(0.2)
        self._wait_for_prompt()

    def end(self) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._master)

    def _wait_for_prompt(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self._read(0.2) or not self._is_at_prompt():
            if time.monotonic() > deadline:
                raise SystemExit("\n".join(["draw_screen: a command has not ended:", *self.screen.display]))

    def _is_at_prompt(self) -> bool:
        return self.screen.display[self.screen.cursor.y].rstrip() == PROMPT.strip()

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        self._stream.feed(os.read(self._master, 65536))
        return True


def pieces(screen: pyte.Screen, row: int) -> list[tuple[int, str, str, bool]]:
    """Of a line: column, text, colour and whether it is bold; neighbours that look the same are one."""
    found: list[tuple[int, str, str, bool]] = []
    for column in range(screen.columns):
        letter = screen.buffer[row][column]
        if found and found[-1][2:] == (letter.fg, letter.bold):
            start, text, *look = found[-1]
            found[-1] = (start, text + letter.data, *look)
        else:
            found.append((column, letter.data, letter.fg, letter.bold))
    return [(column + len(text) - len(text.lstrip()), text.strip(), colour, bold) for column, text, colour, bold in found if text.strip()]


def svg(screen: pyte.Screen, rows: int) -> str:
    width, height = screen.columns * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN

    def rules(colours: dict[str, str]) -> str:
        return "".join(f".{name}{{fill:{value}}}" for name, value in colours.items())

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
             "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328;white-space:pre}"
             f".bold{{font-weight:bold}}.page{{fill:#f6f8fa;stroke:#d1d9e0}}{rules(COLOURS)}"
             f"@media (prefers-color-scheme:dark){{text{{fill:#e6edf3}}.page{{fill:#0d1117;stroke:#3d444d}}{rules(DARK)}}}</style>",
             f'<rect class="page" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8"/>']
    for row in range(rows):
        for column, text, colour, bold in pieces(screen, row):
            looks = " ".join([colour] * (colour in COLOURS) + ["bold"] * bold)
            place = f'x="{MARGIN + column * WIDTH:.1f}" y="{MARGIN + (row + 0.75) * HEIGHT:.1f}" textLength="{len(text) * WIDTH:.1f}"'
            lines.append(f"<text {place}" + (f' class="{looks}"' if looks else "") + f">{html.escape(text)}</text>")
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("commands", nargs="+")
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--folder", type=pathlib.Path, help="where the shell is; it is made, and removed in the end (default: a temporary one)")
    parser.add_argument("--with", dest="files", type=pathlib.Path, nargs="*", default=[])
    options = parser.parse_args()
    columns, rows = map(int, options.size.split("x"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or pathlib.Path(temporary) / "project"
        folder.mkdir()
        for file in options.files:
            shutil.copy(file, folder)
        shell = Shell(folder, columns, rows)
        try:
            for command in options.commands:
                shell.type(command)
        finally:
            shell.end()
            shutil.rmtree(folder)
    used = max(row for row in range(rows) if shell.screen.display[row].strip())
    options.picture.write_text(svg(shell.screen, used))  # without the last prompt


if __name__ == "__main__":
    main()
