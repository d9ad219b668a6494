"""Why did the GPU hang? Crash dumps and captures of Adreno, AMD and Intel GPUs.

Reports and events are dictionaries in the form that ``unwedge explain --json`` and ``unwedge decode --json`` print: every field may
be absent, values of registers and addresses are hexadecimal strings.
"""

import json as _json
import os as _os

from . import _unwedge
from ._unwedge import UnwedgeError, disassemble_afuc, disassemble_amdgcn, disassemble_ir3

__version__ = _unwedge.version()
__all__ = [
    "Capture",
    "Dump",
    "UnwedgeError",
    "disassemble_afuc",
    "disassemble_amdgcn",
    "disassemble_ir3",
    "lookup",
    "open",
]


class _Input:
    """What dumps and captures have in common."""

    def __init__(self, native, name):
        self._native = native
        self._registers = None
        #: How the input was named.
        self.name = name

    @property
    def kind(self):
        """The kind of the file, as ``unwedge info --json`` has it: ``msm-devcoredump``."""
        return self._native.kind()

    def events(self, type=None):
        """Iterates over the objects of ``unwedge decode --json``; with ``type`` over those of that type only."""
        for line in self._native.events():
            event = _json.loads(line)
            if type is None or event.get("type") == type:
                yield event

    def __repr__(self):
        return f"<unwedge.{self.__class__.__name__} {self.kind} {self.name!r}>"


class Dump(_Input):
    """A crash dump of any driver."""

    @property
    def signature(self):
        """A line that is the same for equal hangs, whatever their addresses and processes."""
        return self._native.signature()

    @property
    def diagnostics(self):
        """What of the dump was malformed or lost, a text each."""
        return self._native.diagnostics()

    def explain(self):
        """What hung, where and why: the object of ``unwedge explain --json``."""
        return _json.loads(self._native.explain_json())

    def explain_text(self):
        """The report as text."""
        return self._native.explain_text()

    def info(self):
        """What is in the dump, and what was not captured."""
        return _json.loads(self._native.info_json())

    def around_hang(self):
        """The packets around the stop and the state there, as text."""
        return self._native.around_hang()

    def registers(self):
        """Values of registers by name. Of a name that comes several times, as in several engines, the first value counts.

        The dump is decoded for it once.
        """
        return dict(self._by_name())

    def _by_name(self):
        if self._registers is not None:
            return self._registers
        values = {}
        for event in self.events():
            if event.get("type") != "register":
                continue
            name, value = event.get("name"), event.get("value")
            if name is not None and value is not None:
                values.setdefault(name, int(value, 0) if isinstance(value, str) else value)
        self._registers = values
        return values

    def register(self, name):
        """The value of a register by its name; ``None`` where the dump does not hold it."""
        return self._by_name().get(name)


class Capture(_Input):
    """A capture of command streams of an Adreno (``.rd``). It is read as a stream."""


def open(source, *, name=None):
    """Opens a dump, capture, bundle or folder of a RADV report: a path, or its bytes. Compression is undone.

    Raises :class:`UnwedgeError` when it is something else, and :class:`OSError` when it cannot be read.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        name = name or "bytes"
        native = _unwedge.open_bytes(bytes(source), name)
    else:
        path = _os.fspath(source)
        name = name or path
        if _os.path.isdir(path):
            files = []
            for entry in sorted(_os.listdir(path)):
                member = _os.path.join(path, entry)
                if _os.path.isfile(member) and entry.endswith((".log", ".spv")):
                    with _io_open(member) as file:
                        files.append((entry, file.read()))
            native = _unwedge.open_folder(files, name)
        else:
            with _io_open(path) as file:
                native = _unwedge.open_bytes(file.read(), name)
    return Capture(native, name) if native.kind() == "rd-capture" else Dump(native, name)


def _io_open(path):
    import builtins

    return builtins.open(path, "rb")


def lookup(gpu, *questions):
    """Looks up registers, packets and enums as ``unwedge regs`` does: names, patterns, offsets, each followed by a value or not."""
    return [_json.loads(line) for line in _unwedge.lookup(gpu, [str(question) for question in questions]).splitlines()]
