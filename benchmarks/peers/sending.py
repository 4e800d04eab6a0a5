"""Requests made beforehand, sent to a server over one connection: what is measured is the server. Standard library only."""

import http.client
import struct
import time
from urllib.parse import urlsplit

_LENGTH = struct.Struct("<I")


def pack(bodies):
    """The bodies as the content of one file."""
    return b"".join(_LENGTH.pack(len(body)) + body for body in bodies)


def unpack(data):
    """The bodies of a file."""
    bodies, at = [], 0
    while at < len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        bodies.append(data[at : at + size])
        at += size
    return bodies


def send(address, bodies, at_most_s=120):
    """Post each until it is taken, waiting as the server asks. Raises: OSError; RuntimeError when it refuses."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=at_most_s)
    until_s = time.monotonic() + at_most_s
    try:
        for body in bodies:
            while True:
                connection.request("POST", parts.path, body, {"Content-Type": "application/x-protobuf"})
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    break
                if answer.status not in (429, 503) or time.monotonic() > until_s:
                    raise RuntimeError(f"the server answers {answer.status}")
                time.sleep(min(float(answer.headers.get("Retry-After", "0.1")), 0.1))
    finally:
        connection.close()
