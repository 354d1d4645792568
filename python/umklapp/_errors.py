"""Errors of scripts, as exceptions."""

from __future__ import annotations


class Error(Exception):
    """A script has failed. Printed, it has the line with a caret, and a hint.

    ``message`` is the sentence, ``hint`` the remedy or None, ``line`` and ``column`` (from 1) the place in the script
    or None, ``file`` its name or None.
    """

    message: str = ""
    hint: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None


class InputError(Error, ValueError):
    """Wrong names, sizes, options, values."""


class FileError(Error, OSError):
    """A file that cannot be read, written or understood."""


class NumericError(Error, ArithmeticError):
    """A numerical failure: no convergence, a spectrum outside its window."""


class BackendError(Error, RuntimeError):
    """A backend is missing, or its driver has failed."""


class OutOfMemoryError(Error, MemoryError):
    """A request for more memory than there is. The session continues."""


class InternalError(Error, RuntimeError):
    """A bug of Umklapp."""


class Exit(Error):
    """The script has called ``exit(code)`` with a ``code`` other than 0."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the script has ended itself with exit code {code}")
        self.code = code
        self.message = str(self)


_KINDS = {
    "Input": InputError,
    "File": FileError,
    "Numeric": NumericError,
    "Backend": BackendError,
    "Memory": OutOfMemoryError,
    "Internal": InternalError,
}


def made(
    kind: str,
    text: str,
    message: str,
    hint: str | None,
    file: str | None,
    place: tuple[int, int] | None,
) -> Error:
    error = _KINDS.get(kind, Error)(text)
    error.message = message
    error.hint = hint
    # An OSError has a `filename` of its own, which is that of the data.
    error.file = file
    error.line, error.column = place or (None, None)
    return error
