"""Draws recording.svg from recording.json, both beside this file: a chat in a terminal, as it was recorded.

    python3 docs/figures/make_recording.py [--record PROGRAM] [FOLDER]

With --record it first talks with PROGRAM, which is greta-cli, on a terminal of its own, and writes recording.json: what
the terminal got, in pieces with their times in seconds. FOLDER is where the picture goes. The picture moves where the
viewer can animate; elsewhere it shows the end.
"""
import fcntl
import html
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time

COLUMNS, ROWS = 90, 20
WIDTH, LINE, LETTER, MARGIN = 760, 19, 8.0, 16  # of the picture, in pixels
QUESTION = "Tell me of the fox and the old miller."
KEY_SECONDS = 0.05  # between two keys
COLOURS = {"": "#d3d7cf", "1;32": "#8ae234", "2": "#888a85"}  # by the words of an escape sequence


def record(program):
    """What `program chat` writes while someone asks it for a story and leaves: [seconds, text] of each piece."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(program, [program, "chat", "--seed", "11"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    keys, began, pieces, prompts = list(QUESTION + "\r"), time.time(), [], 0
    next_key = None
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.01)
        if ready:
            try:
                piece = os.read(terminal, 65536).decode()
            except OSError:
                break
            pieces.append([round(time.time() - began, 3), piece])
            if "\x1b[?2004h" in piece:  # it waits for a line
                prompts += 1
                next_key = time.time() + 0.8
                if prompts == 2:
                    keys = ["\x04"]  # Ctrl-D leaves
        if next_key and keys and time.time() >= next_key:
            os.write(terminal, keys.pop(0).encode())
            next_key = time.time() + KEY_SECONDS
    os.waitpid(child, 0)
    return pieces


def shown(pieces):
    """The characters of a recording that stay: (seconds, row, column, character, colour), as a terminal puts them."""
    cells, row, column, colour = {}, 0, 0, ""
    for seconds, piece in pieces:
        for token in re.findall("\x1b\\[[?0-9;]*[a-zA-Z]|.", piece, re.DOTALL):
            if token.startswith("\x1b"):
                if token.endswith("m"):
                    colour = {"0": ""}.get(token[2:-1], token[2:-1])
                elif token.endswith("K"):
                    for at in [at for at in cells if at[0] == row and at[1] >= column]:
                        del cells[at]
                elif token.endswith("G"):
                    column = int(token[2:-1] or 1) - 1
                elif token.endswith("C"):
                    column += int(token[2:-1] or 1)
            elif token == "\r":
                column = 0
            elif token == "\n":
                row += 1
            elif token == "\b":
                column -= 1
            else:
                before = cells.get((row, column))
                if not before or before[1:] != (token, colour):
                    cells[row, column] = (seconds, token, colour)
                column += 1
    return [(seconds, *at, token, colour) for at, (seconds, token, colour) in sorted(cells.items())]


def draw(pieces):
    """Characters that came together are one piece of text."""
    runs = []
    for seconds, row, column, token, colour in shown(pieces):
        last = runs[-1] if runs else None
        if last and last[:2] == [seconds, row] and last[2] + len(last[3]) == column and last[4] == colour:
            last[3] += token
        else:
            runs.append([seconds, row, column, token, colour])
    begin = min(run[0] for run in runs)
    height = 2 * MARGIN + LINE * (max(run[1] for run in runs) + 1)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="monospace" font-size="13">',
             f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#1e2224"/>']
    for seconds, row, column, token, colour in runs:
        if token.isspace():
            continue
        length = f' textLength="{len(token) * LETTER:.0f}"' if len(token) > 1 else ""
        lines.append(f'<text x="{MARGIN + column * LETTER:.0f}" y="{MARGIN + LINE * row + 13}" fill="{COLOURS[colour]}"{length} '
                     f'xml:space="preserve">{html.escape(token)}<set attributeName="visibility" to="hidden" begin="0s" '
                     f'end="{max(seconds - begin, 0.001):.2f}s"/></text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main():
    here, words = os.path.dirname(os.path.abspath(__file__)), sys.argv[1:]
    path = os.path.join(here, "recording.json")
    if words[:1] == ["--record"]:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(record(words[1]), file, indent=0)
            file.write("\n")
        words = words[2:]
    with open(path, encoding="utf-8") as file:
        pieces = json.load(file)
    with open(os.path.join(words[0] if words else here, "recording.svg"), "w", encoding="utf-8") as file:
        file.write(draw(pieces))


main()
