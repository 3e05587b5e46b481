"""Scalars for TensorBoard, written as protocol buffers without TensorFlow.

The wire format (field number and type in one byte, then a length or a number, then the content):

    Event: 09 seconds as double, 10 step, 2A Summary; the first one: 1A version of the format
    Summary: 0A Value; Value: 0A tag, 4A metadata, 42 TensorProto
    metadata: 0A PluginData (0A plugin's name), 20 01 for scalars; TensorProto: 08 01 for float,
    12 its shape, empty, 2A its values
"""

import os
import socket
import struct
import time
from pathlib import Path

import numpy as np

from data_prep.pretraining.tf_example import framed, varint
from official_bert.common.files import appending

_PLUGIN = b"\x0a\x07scalars"
_METADATA = b"\x0a" + varint(len(_PLUGIN)) + _PLUGIN + b"\x20\x01"


class EventWriter:
    """Appends scalars to a new events file in a folder, which is created."""

    def __init__(self, folder):
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}.v2"
        self._file = appending(Path(folder, name), "ab")
        self._write(_field(b"\x1a", b"brain.Event:2"))

    def scalars(self, step, values):
        """Writes numbers of a step: dict of name -> float."""
        summary = b"".join(_field(b"\x0a", _value(tag, x)) for tag, x in values.items())
        self._write(b"\x10" + varint(step) + _field(b"\x2a", summary))
        self._file.flush()

    def close(self):
        self._file.close()

    def _write(self, fields):
        self._file.write(framed(b"\x09" + struct.pack("<d", time.time()) + fields))


def _value(tag, number):
    with np.errstate(over="ignore"):  # a perplexity may be beyond float32
        tensor = b"\x08\x01\x12\x00" + _field(b"\x2a", np.array(number, "<f4").tobytes())
    return _field(b"\x0a", tag.encode()) + _field(b"\x4a", _METADATA) + _field(b"\x42", tensor)


def _field(key, content):
    return key + varint(len(content)) + content
