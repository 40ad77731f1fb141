"""Writes case_tables.inc: how characters beyond ASCII change to lower, upper and title case, and when folded.

    make_case_tables.py > case_tables.inc

Runs of code points at a fixed stride that change by the same amount share a run; what becomes several
characters has a row of its own, with its UTF-8. Title case is written where it is not the upper one, and
what is folded where it is not the lower case.
"""
import unicodedata


def changes(change, base):
    """(code, text) where `change` does something else than `base`."""
    for code in range(0x80, 0x110000):
        if not 0xD800 <= code < 0xE000 and change(chr(code)) != base(chr(code)):
            yield code, change(chr(code))


def rows(change, base):
    """(first, last, stride, delta) over single characters."""
    found = []
    for code, to in changes(change, base):
        if len(to) != 1:
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


def texts(change, base):
    for code, to in changes(change, base):
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
for name, change, base in (("Lower", str.lower, str), ("Upper", str.upper, str), ("Title", str.title, str.upper),
                           ("Fold", str.casefold, str.lower)):
    print(f"constexpr CaseRun k{name}Runs[] = {{")
    wrap(f"{{{first}, {last}, {stride}, {delta}}}," for first, last, stride, delta in rows(change, base))
    print("};")
    print(f"constexpr CaseText k{name}Texts[] = {{")
    wrap(f'{{{code}, "{text}"}},' for code, text in texts(change, base))
    print("};")
