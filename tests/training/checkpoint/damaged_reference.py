"""A file of which a byte is another one, or which is cut off or mixed up, is refused or holds what it held: it never holds
something else.

usage: damaged_reference.py PYTHON_PEER
"""

import os
import random
import subprocess
import sys
import tempfile
import zipfile

import torch

FILES, PICKLES = 300, 1500


def damaged(whole, chance, number):
    data = bytearray(whole)
    at = chance.randrange(len(data))
    if number % 10 == 0:
        return bytes(data[:at])
    if number % 10 == 1:
        data[at : at + 64] = bytes(64)
    elif number % 10 == 2:
        data[at : at + 8] = data[-8:]
    else:
        data[at] ^= 1 << chance.randrange(8)
    return bytes(data)


def other_pickles(path, folder, chance):
    """Files that are whole by their checksums, and whose instructions are others: the reader has to survive them."""
    with zipfile.ZipFile(path) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    (pickled,) = (name for name in records if name.endswith("/data.pkl"))
    for number in range(PICKLES):
        data = bytearray(records[pickled])
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(data))
            if chance.random() < 0.5:
                data[at] = chance.randrange(256)
            elif chance.random() < 0.5:
                del data[at : at + chance.randrange(1, 9)]
            else:
                data[at:at] = chance.choice([b"R", b"Q", b"b", b"t", b"(", b"h\x01", b"j\xff\xff\xff\xff", b"2", b"0", b"e", b"u", b"\x85",
                                             b"M\xff\xff", b"\x8a\x08" + bytes(7) + b"\x80", b"cos\nsystem\n", b"]q\x01h\x01a"])
        each = os.path.join(folder, f"pickle-{number}.pt")
        with zipfile.ZipFile(each, "w") as archive:
            for name, content in records.items():
                archive.writestr(name, bytes(data) if name == pickled else content)
        yield each


def main(peer):
    chance = random.Random(33)
    torch.manual_seed(33)
    value = {"model_state_dict": torch.nn.Linear(40, 30).state_dict(), "epoch": 3, "notes": ["one", 2.5, None, (1, True)]}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "whole.pt")
        torch.save(value, path)
        with open(path, "rb") as file:
            whole = file.read()
        paths = [os.path.join(folder, f"{number}.pt") for number in range(FILES)]
        for number, each in enumerate(paths):
            with open(each, "wb") as file:
                file.write(damaged(whole, chance, number))
        done = subprocess.run([peer, "compare", path, *paths], check=True, capture_output=True, text=True)
        pickles = list(other_pickles(path, folder, chance))
        answers = subprocess.run([peer, "compare", path, *pickles], check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(answers) == PICKLES, "a pickle has ended the reader"
    assert sum("system" in answer for answer in answers) > 0, "no pickle names another function"
    lines = done.stdout.splitlines()
    assert len(lines) == FILES, done.stdout
    for each, line in zip(paths, lines):
        assert line == "same" or (line.startswith(each) and (" is " in line or " holds " in line)), line
    refused = FILES - lines.count("same")
    assert sum("by their CRC-32" in line for line in lines) > FILES / 5, "no byte of a tensor was another one"
    print(f"{refused} of {FILES} damaged files are refused, and {FILES - refused} hold what they held; {PICKLES} others were survived")


if __name__ == "__main__":
    main(sys.argv[1])
