"""Draws comparison.svg from comparison.json, both beside this file: speeds beside those of llama.cpp.

    python3 docs/figures/make_comparison.py [FOLDER]

comparison.json says where each figure comes from. FOLDER is where the picture goes.
"""
import html
import json
import os
import sys

WIDTH, LEFT, BAR, GAP = 920, 210, 13, 12  # of the picture, in pixels
MOST = WIDTH - LEFT - 190  # of a bar
OURS, THEIRS = "#3465a4", "#babdb6"


def text(x, y, words, size=13, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" fill="#2e3436">'
            f'{html.escape(words)}</text>')


def box(x, y, width, height, colour):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def bars(row, y):
    """Two bars, of which the longer one has the whole width, since the rows have nothing in common."""
    most = max(row["greta"], row["peer"])
    ours, theirs = (MOST * row[name] / most for name in ("greta", "peer"))
    return [text(LEFT - 10, y + BAR + 4, row["name"], anchor="end"), box(LEFT, y, ours, BAR, OURS),
            box(LEFT, y + BAR, theirs, BAR, THEIRS),
            text(LEFT + ours + 8, y + BAR - 2, f'{row["greta"]:,}   ({row["greta"] / row["peer"]:.1f} x)', 12, weight="bold"),
            text(LEFT + theirs + 8, y + 2 * BAR - 1, f'{row["peer"]:,}', 12)]


def draw(data):
    lines, y = [text(20, 28, data["title"], 17)], 44
    lines += [box(20, y, 12, 12, OURS), text(38, y + 11, "GRETA"), box(100, y, 12, 12, THEIRS), text(118, y + 11, "llama.cpp")]
    y += 38
    for group in data["groups"]:
        lines.append(text(20, y, group["name"], 14, weight="bold"))
        y += 10
        for row in group["rows"]:
            lines += bars(row, y)
            y += 2 * BAR + GAP
        y += 20
    lines.append(text(20, y, data["note"], 12))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 16}" font-family="sans-serif">'
    return "\n".join([head, box(0, 0, WIDTH, y + 16, "#ffffff"), *lines, "</svg>"]) + "\n"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "comparison.json"), encoding="utf-8") as file:
        data = json.load(file)
    with open(os.path.join(sys.argv[1] if len(sys.argv) == 2 else here, "comparison.svg"), "w", encoding="utf-8") as file:
        file.write(draw(data))


main()
