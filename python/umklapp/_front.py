"""Where a session's words and pictures go: Python's own streams, and the notebook where one runs."""

from __future__ import annotations

import base64
import sys
from typing import Any


def _notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def shows_lines() -> bool:
    """Whether progress is shown line by line, each in place of the one before."""
    return _notebook()


def line(text: str) -> None:
    if sys.stdout is not None:
        sys.stdout.write(text + "\n")


def note(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")


_progress: dict[int, Any] = {}


def progress(number: int, text: str) -> None:
    from IPython.display import display

    shown = _progress.get(number)
    data = {"text/plain": text}
    if shown is None:
        # Works are numbered through; of old ones nobody asks any more.
        _progress.clear()
        _progress[number] = display(data, raw=True, display_id=True)
    else:
        shown.update(data, raw=True)


def plot(text: str, svg: str, png: bytes) -> None:
    if _notebook():
        from IPython.display import display

        data = {"text/plain": text, "image/png": base64.b64encode(png).decode()}
        if len(svg) <= 2 << 20:
            data["image/svg+xml"] = svg
        display(data, raw=True)
    elif sys.stdout is not None and sys.stdout.isatty():
        line(text)
    else:
        note("note: `plot` without a file draws in a terminal or a notebook, and there is none")
