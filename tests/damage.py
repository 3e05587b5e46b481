"""One changed bit: damage to a file as a disk or a broken transfer does it."""


def flipped(content: bytes, place: int, bit: int = 0) -> bytes:
    """`content` with one bit of the byte at `place` changed."""
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)


def flip(path, place: int) -> None:
    path.write_bytes(flipped(path.read_bytes(), place))
