"""`python -m greta` is the program greta-cli, which the wheel brings."""
from __future__ import annotations

import os
import sys
from typing import NoReturn


def program() -> str:
    """The path of greta-cli: the one that GRETA_CLI names, else the one of the package."""
    return os.environ.get("GRETA_CLI") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "greta-cli")


def main() -> NoReturn:
    path = program()
    try:
        os.execv(path, ["greta-cli", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"greta-cli: {path} cannot be started ({error.strerror}): install a wheel of greta, or set GRETA_CLI")


if __name__ == "__main__":
    main()
