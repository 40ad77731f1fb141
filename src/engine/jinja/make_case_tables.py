"""Writes case_tables.inc: how characters beyond ASCII change between lower, upper and title case.

    make_case_tables.py > case_tables.inc

Runs of code points at a fixed stride that change by the same amount share a row; what becomes several
characters has a row of its own, with its UTF-8.
"""
import unicodedata


def rows(change):
    """(first, last, stride, delta) over single characters."""
    found = []
    for code in range(0x80, 0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        to = change(chr(code))
        if len(to) != 1 or ord(to) == code:
            continue
        delta = ord(to) - code
        if found:
            first, last, stride, same = found[-1]
            step = code - last
            if same == delta and step <= 2 and (stride == step or first == last):
                found[-1] = (first, code, step, delta)
                continue
        found.append((code, code, 1, delta))
    return found


def texts(change):
    for code in range(0x80, 0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        to = change(chr(code))
        if len(to) > 1:
            yield code, "".join(f"\\x{byte:02X}" for byte in to.encode())


def wrap(items):
    line = " "
    for item in items:
        if len(line) + len(item) > 108:
            print(line)
            line = " "
        line += " " + item
    print(line)


# ASCII is done by arithmetic.
print(f"// Made by make_case_tables.py from Unicode {unicodedata.unidata_version}. Do not edit.")
for name, change in (("Lower", str.lower), ("Upper", str.upper), ("Title", str.title)):
    changed = rows(change)
    if name == "Title":  # only where it is not the upper case
        changed = [(c, c, 1, ord(chr(c).title()) - c) for c in range(0x80, 0x110000)
                   if not 0xD800 <= c < 0xE000 and len(chr(c).title()) == 1 and chr(c).title() != chr(c).upper()]
    print(f"constexpr CaseRow k{name}Rows[] = {{")
    wrap(f"{{{first}, {last}, {stride}, {delta}}}," for first, last, stride, delta in changed)
    print("};")
    print(f"constexpr CaseText k{name}Texts[] = {{")
    wrap(f'{{{code}, "{text}"}},' for code, text in texts(change))
    print("};")
