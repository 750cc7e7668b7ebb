"""What a hostile file could make a library do, called in the confined process as its readers are."""

import ctypes
import os
import socket
import subprocess
from pathlib import Path


def crash(path):
    ctypes.string_at(0)


def fill_memory(path):
    return len(bytearray(8 << 30))


def write(path):
    path.with_name("written").write_text("x")


def overwrite(path):
    path.write_text("x")


def read(path, other):
    return Path(other).read_text()


def folder(path):
    return os.listdir(path.parent)


def connect(path, port):
    socket.create_connection(("127.0.0.1", port), 1)


def execute(path):
    subprocess.run(["/bin/sh", "-c", "true"], check=True)


def signal(path, process):
    os.kill(process, 9)


def environment(path):
    return Path(f"/proc/{os.getppid()}/environ").read_bytes()


def raise_many(path, n):
    yield from range(n)
    raise ValueError("the end")


def parent(path):
    return os.getppid()
