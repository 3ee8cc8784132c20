"""A name server of one node, at 127.0.0.1 port 53 (UDP): name_server.py FILE

FILE is read for each question: {"names": {NAME: [ADDRESS…]}, "seconds": before each answer, "silent": true for none at
all}.
"""

import ipaddress
import json
import pathlib
import socket
import struct
import sys
import threading
import time

A, AAAA = 1, 28
NO_ERROR, NO_SUCH_NAME = 0x8180, 0x8183


def question_of(packet: bytes) -> tuple:
    """(name, type, where it ends)"""
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode())
        at += 1 + packet[at]
    return ".".join(labels).lower(), struct.unpack_from("!H", packet, at + 1)[0], at + 5


def answer_to(packet: bytes, names: dict) -> bytes:
    name, kind, end = question_of(packet)
    known = [ipaddress.ip_address(text) for text in names.get(name, [])]
    records = [address.packed for address in known if {4: A, 6: AAAA}[address.version] == kind]
    header = packet[:2] + struct.pack("!HHHHH", NO_ERROR if known else NO_SUCH_NAME, 1, len(records), 0, 0)
    body = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 1, len(data)) + data for data in records)
    return header + packet[12:end] + body


def answer(server: socket.socket, packet: bytes, client, file: pathlib.Path):
    zone = json.loads(file.read_text())
    time.sleep(zone.get("seconds", 0))
    if not zone.get("silent"):
        server.sendto(answer_to(packet, zone["names"]), client)


server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("ready", flush=True)
while True:
    threading.Thread(
        target=answer, args=(server, *server.recvfrom(4096), pathlib.Path(sys.argv[1])), daemon=True
    ).start()
