"""Draws README's pictures from readme.json: bytes.svg, speed.svg and roofline.svg, all beside this file.

    python3 docs/figures/make_readme.py build/release/bin/greta-cli [FOLDER]

readme.json has what `greta-cli info --json` and `greta-cli bench --profile -o json` wrote, less the kernels of each
stage. The program itself draws the last two (`greta-cli bench --draw`). FOLDER is where the pictures go.
"""
import html
import json
import os
import subprocess
import sys
import tempfile

WIDTH, LEFT, BAR, ROW = 920, 200, 22, 30  # of a picture, in pixels
MOST = WIDTH - LEFT - 210  # of a bar


def text(x, y, words, size=13, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="#2e3436">{html.escape(words)}</text>'


def box(x, y, width, height, colour):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def bytes_picture(info):
    total = sum(info["bytes_by_type"].values())
    lines, y = [text(20, 30, f'{info["file"]}: {total / 2**20:.2f} MiB of weights', 17)], 50
    for kind, colour in (("type", "#3465a4"), ("part", "#f57900")):
        shares = info[f"bytes_by_{kind}"]
        lines.append(text(20, y + 18, f"by {kind}", 15))
        for name, size in shares.items():
            lines += [text(LEFT - 10, y + 16, name, anchor="end"), box(LEFT, y, MOST * size / total, BAR, colour),
                      text(LEFT + MOST * size / total + 10, y + 16, f"{size / 2**20:.2f} MiB, {100 * size / total:.1f} %")]
            y += ROW
        y += ROW / 2
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y:.0f}" font-family="sans-serif">'
    return "\n".join([head, box(0, 0, WIDTH, y, "#ffffff"), *lines, "</svg>"]) + "\n"


def drawn(program, rows):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(rows, file)
        file.flush()
        return subprocess.run([program, "bench", "--draw", file.name], stdout=subprocess.PIPE, check=True, text=True).stdout


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "readme.json"), encoding="utf-8") as file:
        data = json.load(file)
    rows = data["bench"]
    plain = [{key: value for key, value in row.items() if key != "stages"} for row in rows]
    pictures = {"bytes.svg": bytes_picture(data["info"]), "speed.svg": drawn(sys.argv[1], plain),
                "roofline.svg": drawn(sys.argv[1], [row for row in rows if "stages" in row])}
    for name, picture in pictures.items():
        with open(os.path.join(sys.argv[2] if len(sys.argv) == 3 else here, name), "w", encoding="utf-8") as file:
            file.write(picture)


main()
