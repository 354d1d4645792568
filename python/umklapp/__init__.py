"""Umklapp: quantum-lattice workflows, from Python.

A session runs the scripting language of Umklapp and keeps its variables. Numbers come back as NumPy arrays, tables as
read-only mappings of arrays, and operators, lattices and states as handles that stay in the session::

    import umklapp

    s = umklapp.Session()
    s.eval("let h = tight_binding(lattice::honeycomb(64, 64), #{ hopping: -2.7 });")
    dos = s.call("kpm::dos", s["h"], moments=512, seed=1)
    dos["energy"], dos.density                     # arrays
    dos.to_pandas()

``umklapp.run("script.rhai", set={"n": 64})`` runs a script as ``umklapp run --set n=64 script.rhai`` does, and gives
the value of its last expression.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _front, _native
from ._errors import (
    BackendError,
    Error,
    Exit,
    FileError,
    InputError,
    InternalError,
    NumericError,
    OutOfMemoryError,
)
from ._native import Handle, Table, __version__

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "BackendError",
    "Error",
    "Exit",
    "FileError",
    "Handle",
    "InputError",
    "InternalError",
    "NumericError",
    "OutOfMemoryError",
    "Session",
    "Table",
    "__version__",
    "run",
]

Mapping.register(Table)


class Session(_native.Session):
    """A session of the language, with its own variables and its own thread.

    ``s["x"]`` is a variable, ``s["x"] = value`` makes one, ``s.eval("..")`` evaluates a piece of script,
    ``s.call("kpm::dos", h, moments=512)`` calls a function. While it works, other Python threads continue. Ctrl-C
    stops it and raises ``KeyboardInterrupt``; variables are kept.

    Parameters
    ----------
    backend : where to compute: "auto" (a GPU if there is one), "cpu", "cuda", or several that share the rows, like
        "cpu+cuda".
    weights : the weights of several backends; by default they are measured.
    device : number of the GPU, counted from 0, or several numbers.
    threads : number of worker threads, 0 for all cores. For work outside the backends the first session of a process
        that names a number decides.
    seed : seed of all random numbers for which a script gives no seed.
    out : folder for the files that scripts write.
    quiet : no progress, no notes.
    set : ``args`` of the scripts.
    """

    def __new__(
        cls,
        *,
        backend: str = "auto",
        weights: Sequence[float] = (),
        device: int | Sequence[int] = 0,
        threads: int = 0,
        seed: int = 0,
        out: str | os.PathLike[str] | None = None,
        quiet: bool = False,
        set: Mapping[str, Any] | None = None,
    ) -> Self:
        devices = [device] if isinstance(device, int) else list(device)
        given = None if set is None else dict(set)
        return super().__new__(
            cls, backend, list(weights), devices, threads, seed, out, quiet, given, _front.shows_lines()
        )

    def eval(self, text: str) -> Any:
        """Returns the value of a piece of script: that of its last statement, or None if a semicolon ends it."""
        return super().eval(text)

    def run(self, file: str | os.PathLike[str], *, set: Mapping[str, Any] | None = None) -> Any:
        """Runs a script file with ``set`` as its ``args``; returns the value of its last expression."""
        return super().run_file(file, None if set is None else dict(set))

    def call(self, function: str, /, *given: Any, **options: Any) -> Any:
        """Calls a function: ``s.call("kpm::dos", h, moments=512)`` is ``kpm::dos(h, #{ moments: 512 })``."""
        return super().call(function, *given, **options)

    def keys(self) -> list[str]:
        """The names of the variables."""
        return self.names()

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __repr__(self) -> str:
        return f"<umklapp.Session with {', '.join(self.names()) or 'no variables'}>"


def run(
    file: str | os.PathLike[str] | None = None,
    *,
    source: str | None = None,
    set: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Runs a script, a file or a ``source`` text, in a new session; returns the value of its last expression.

    ``set`` becomes ``args`` of the script; ``options`` are those of `Session`: ``backend``, ``threads``, ``seed``,
    ``out``, ``quiet``, ... A value that lives in the session (an operator, a state) keeps the session alive.
    """
    if (file is None) == (source is None):
        raise TypeError("run() takes a file or a source, and one of them")
    session = Session(set=set, **options)
    if file is not None:
        return session.run(file)
    assert source is not None
    return session.eval(source)
