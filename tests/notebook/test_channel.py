"""The socket between ranks and kernel; no kernel."""

import selectors
import socket

import pytest
from taas.notebook.files import socket_path
from taas.notebook.channel import Channel
from taas.notebook.lines import Lines
from taas.notebook.rank.connection import Connection


@pytest.fixture
def heard_at():
    """Opens a channel at a path; returns it with the list of what it has heard."""
    channels = []

    def make(path):
        selector = selectors.DefaultSelector()
        heard = []
        channels.append((Channel(str(path), selector, heard.append), selector))
        return channels[-1][0], heard

    yield make
    for channel, selector in channels:
        channel.close()
        selector.close()


def test_messages_come_whole_however_they_are_cut(heard_at, tmp_path):
    channel, heard = heard_at(tmp_path / "ranks")
    sender = socket.socket(socket.AF_UNIX)
    sender.connect(str(tmp_path / "ranks"))
    for piece in (b'{"a": 1}\n{"b"', b": ", b"2}\n", b'{"c": 3}\n{"never": '):
        sender.sendall(piece)
        channel.drain()
    sender.close()
    channel.drain()
    assert heard == [{"a": 1}, {"b": 2}, {"c": 3}]


@pytest.mark.parametrize("letters", [1, 90, 200])
def test_the_folder_may_have_a_long_path(heard_at, tmp_path, letters):
    """A socket's own path may have 107 letters."""
    folder = tmp_path / ("x" * letters)
    folder.mkdir()
    channel, heard = heard_at(folder / "ranks")
    assert Connection(str(folder / "ranks")).send("hello", said="here")
    channel.drain()
    assert [message["said"] for message in heard] == ["here"]


def test_a_folder_that_is_gone_is_a_kernel_that_cannot_be_reached(tmp_path):
    assert not Connection(str(tmp_path / ("x" * 200) / "ranks")).send("hello")


def test_short_paths_stay_as_they_are(tmp_path):
    with socket_path.short("/tmp/ranks") as place:
        assert place == "/tmp/ranks"


def test_lines_end_where_they_end():
    lines = Lines()
    assert lines.add(b"one\ntw") == [b"one"]
    assert lines.add(b"") == []
    assert lines.add(b"o\n\nthree\nfo") == [b"two", b"", b"three"]
    assert (lines.rest(), lines.rest()) == (b"fo", b"")


def test_a_long_line_costs_no_more_for_each_of_its_pieces():
    """What had come before is not copied with each piece: that would be half a terabyte here, and never end."""
    lines, piece = Lines(), b"x" * 4096
    for _ in range(1 << 14):
        assert lines.add(piece) == []
    (line,) = lines.add(b"\n")
    assert len(line) == len(piece) << 14
