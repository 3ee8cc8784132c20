"""A Dataset whose samples are objects of an HTTP server."""

from __future__ import annotations

import http.client
import urllib.parse
from typing import Any

import torch
from torch.utils.data import Dataset


class ObjectDataset(Dataset):
    """`count` images and their labels.

    A process that reads has a connection of its own, opened with its first object.
    """

    def __init__(self, url: str, count: int) -> None:
        self._url = url
        self._count = count
        self._connection: http.client.HTTPConnection | None = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        data = self._read(f"/objects/{index}")
        pixels = torch.frombuffer(bytearray(data[1:]), dtype=torch.uint8)
        return pixels.to(torch.float32) / 255, data[0]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None}  # a connection is not sent to data workers

    def _read(self, path: str) -> bytes:
        """Reads once more over a new connection when the server has closed the one that was idle."""
        try:
            return self._ask(path)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self._connection = None
            return self._ask(path)

    def _ask(self, path: str) -> bytes:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(urllib.parse.urlsplit(self._url).netloc, timeout=60)
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        data = response.read()
        if response.status != http.client.OK:
            raise OSError(f"{self._url}{path}: {response.status} {response.reason}")
        return data
