"""Draws token_time.svg from token_time.json, both beside this file: what the time of one token is spent on.

    python3 docs/figures/make_token_time.py
"""
import html
import json
import os

WIDTH, MARGIN = 920, 20  # of the picture, in pixels
BAR_TOP, BAR_HEIGHT = 46, 40
LEGEND_TOP, LEGEND_STEP = 134, 24


def text(x, y, words, size=14, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{html.escape(words)}</text>'


def box(x, y, width, height, color):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>'


def parts_of(data):
    """The parts of the step, with the remainder as the last one."""
    rest = data["step_us"] - sum(part["us"] for part in data["parts"])
    if rest < 0:
        raise SystemExit(f"the parts take {-rest} us more than the step")
    return data["parts"] + [{**data["rest"], "us": rest}]


def draw(data):
    parts, step = parts_of(data), data["step_us"]
    scale = (WIDTH - 2 * MARGIN) / step  # pixels for a microsecond
    note_y = LEGEND_TOP + LEGEND_STEP * len(parts) + 12
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{note_y + 34}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{note_y + 34}" fill="#ffffff"/>', text(MARGIN, 28, data["title"], 17)]
    x = MARGIN
    for part in parts:
        lines.append(box(x, BAR_TOP, part["us"] * scale, BAR_HEIGHT, part["color"]))
        x += part["us"] * scale
    for tick in range(0, step + 1, 250):
        at = MARGIN + tick * scale
        lines += [box(at, BAR_TOP + BAR_HEIGHT, 1, 6, "#000000"),
                  text(at, BAR_TOP + BAR_HEIGHT + 22, f"{tick} us" if tick else "0", 12, "middle" if tick else "start")]
    for place, part in enumerate(parts):
        y = LEGEND_TOP + LEGEND_STEP * place
        lines += [box(MARGIN, y - 12, 14, 14, part["color"]), text(MARGIN + 100, y, f'{part["us"]} us', 14, "end"),
                  text(MARGIN + 160, y, f'{100 * part["us"] / step:.1f} %', 14, "end"),
                  text(MARGIN + 176, y, part["name"])]
    lines += [text(MARGIN, note_y, data["note"], 12), text(MARGIN, note_y + 18, f'From {data["source"]}.', 12), "</svg>"]
    return "\n".join(lines) + "\n"


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "token_time.json"), encoding="utf-8") as file:
        data = json.load(file)
    with open(os.path.join(folder, "token_time.svg"), "w", encoding="utf-8") as file:
        file.write(draw(data))


main()
