"""Messages between processes of this package, over private pipes: pickled values in length-prefixed frames.

Both ends are started by this package; nothing that came from elsewhere is ever read this way.
"""

from __future__ import annotations

import pickle
import struct
from typing import BinaryIO

_LENGTH = struct.Struct("<Q")


def write_frame(stream: BinaryIO, value: object) -> None:
    """Raises OSError where nobody reads any more."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> object | None:
    """The next message; None at the end of the stream, or where it was cut off in the middle of one."""
    head = _read_exactly(stream, _LENGTH.size)
    if head is None:
        return None
    body = _read_exactly(stream, _LENGTH.unpack(head)[0])
    return None if body is None else pickle.loads(body)


def _read_exactly(stream: BinaryIO, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        part = stream.read(count - len(data))
        if not part:
            return None
        data += part
    return data
