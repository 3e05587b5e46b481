"""The wire format of protocol buffers, read and written without TensorFlow.

TensorFlow's records, events, checkpoints and requests are in it.
"""

from collections.abc import Iterator


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field number, content) of a message.

    The content is an integer, or bytes; a number of 32 bits is four bytes.

    Raises:
      ValueError, IndexError: the bytes are not a message.
    """
    at = 0
    while at < len(message):
        tag, at = varint_at(message, at)
        if tag & 7 == 0:
            content, at = varint_at(message, at)
        elif tag & 7 in (2, 5):
            size, at = varint_at(message, at) if tag & 7 == 2 else (4, at)
            content, at = message[at : at + size], at + size
        else:
            raise ValueError(f"a field is of kind {tag & 7}")
        if at > len(message):
            raise ValueError("a field is cut off")
        yield tag >> 3, content


def field(number: int, content: bytes) -> bytes:
    """Return an encoded field of bytes, with a number up to 15."""
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint_at(content: bytes, at: int) -> tuple[int, int]:
    """Return (the integer encoded at `at`, of up to 64 bits; the place behind it).

    Raises:
      ValueError, IndexError: there is none.
    """
    value = 0
    for shift in range(0, 70, 7):
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise ValueError("a number of more than 64 bits")


def varint(value: int) -> bytes:
    """Encode a non-negative integer, seven bits a byte; the eighth bit is set where more follow."""
    used = bytearray()
    while value >= 1 << 7:
        used.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*used, value])
