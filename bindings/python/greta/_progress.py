"""How loading is shown: a bar in a terminal, a line of text in a notebook, nothing elsewhere."""
from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

Progress = Callable[[int, int], Any]
_WIDTH = 32
_QUIET_S = 0.5  # what is done sooner is not shown


def _bar(done: int, total: int) -> str:
    filled = _WIDTH * done // max(total, 1)
    return f"loading [{'#' * filled}{' ' * (_WIDTH - filled)}] {done / 1e9:.1f} of {total / 1e9:.1f} GB"


class Bar:
    """Shows progress on standard error."""

    def __init__(self) -> None:
        self.began, self.shown = time.monotonic(), False

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self.began < _QUIET_S or (done >= total and not self.shown):
            return
        self.shown = True
        print("\r" + (_bar(done, total) if done < total else " " * len(_bar(done, total)) + "\r"),
              end="", file=sys.stderr, flush=True)


class NotebookText:
    """Shows progress as a text of the cell, which is rewritten."""

    def __init__(self, display: Any) -> None:
        self.began, self.display, self.handle = time.monotonic(), display, None

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self.began < _QUIET_S and self.handle is None:
            return
        content = {"text/plain": _bar(done, total)}
        if self.handle is None:
            self.handle = self.display(content, raw=True, display_id=True)
        else:
            self.handle.update(content, raw=True)


def default_progress() -> Progress | None:
    kernel = sys.modules.get("ipykernel")
    if kernel is not None and "IPython" in sys.modules:
        return NotebookText(sys.modules["IPython"].display.display)
    if sys.stderr is not None and sys.stderr.isatty():
        return Bar()
    return None
