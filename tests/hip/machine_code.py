"""Reads AMD code objects: the metadata and the instructions of each kernel, by llvm-readelf and llvm-objdump."""
import dataclasses
import functools
import re
import subprocess

# Of a line of llvm-objdump: instruction, address, encoding, and for a branch where it goes.
LINE = re.compile(r"^\t(\S.*?)\s*// ([0-9A-F]{12}):((?: [0-9A-F]{8})+)(?: <[^+>]*(?:\+0x([0-9a-f]+))?>)?\s*$")
BEGIN = re.compile(r"^([0-9a-f]{16}) <(\w+)>:$")
FIELD = re.compile(r"^[ -]{3} \.(\w+):\s+(\S.*)$")  # a field of a kernel; those of its arguments stand further in


@dataclasses.dataclass
class Kernel:
    name: str
    target: str
    threads: int  # that the group has
    fields: dict  # of the metadata: text
    hidden: list  # kinds of its hidden arguments
    lines: list  # (offset, bytes, text, offset of the branch's target or None) of each instruction

    def number(self, field):
        return int(self.fields.get(field, "0"))

    @property
    def wide(self):
        return self.target.startswith("gfx9")  # waves of 64

    @functools.cached_property
    def text(self):
        return "\n".join(line[2] for line in self.lines)

    @property
    def code_bytes(self):
        return self.lines[-1][0] + self.lines[-1][1] if self.lines else 0

    def loops(self):
        """The instructions of each innermost loop. Of several branches to its start, the last one is its end."""
        last_branches = {to: offset for offset, _, _, to in self.lines if to is not None and to <= offset}
        ends = list(last_branches.items())
        inner = [(first, last) for first, last in ends
                 if not any((a, b) != (first, last) and first <= a and b <= last for a, b in ends)]
        return [[text for offset, _, text, _ in self.lines if first <= offset <= last] for first, last in sorted(set(inner))]

    def row_loop(self):
        """The innermost loop over weights of a decode row: of those with products of four bytes the one with the
        fewest, since with more tokens a loop has more of them for the same weights."""
        loops = [(len(dots(loop)), loop) for loop in self.loops() if dots(loop)]
        return min(loops, key=lambda pair: pair[0])[1] if loops else []

    def tile_loop(self):
        """The innermost loop of a tile with matrix instructions: of the tiles of a kernel that of the largest, which has
        the most of them, and of several of them the shortest."""
        return max(self.loops(), key=lambda loop: (len(matrix_products(loop)), -len(loop)), default=[])

    def tile_step(self):
        """That loop with the loads of the next step, where the compiler puts these behind its end: then a longer loop
        begins an instruction before it."""
        inner, texts = self.tile_loop(), [line[2] for line in self.lines]
        first = next(i for i in range(len(texts)) if texts[i:i + len(inner)] == inner)
        before = self.lines[first - 1][0]
        last = max((offset for offset, _, _, to in self.lines if to == before and offset > before), default=None)
        return inner if last is None else [text for offset, _, text, _ in self.lines if before <= offset <= last]


def turns(loop):
    """What a wave does from one barrier of a loop to the next, if it multiplies at a higher priority there: 'load ',
    'multiply ' or 'store ', or several of them."""
    parts, kinds = [[]], []
    for line in loop:
        parts[-1].append(line)
        if line.startswith("s_barrier"):
            parts.append([])
    last = parts.pop()
    if not parts or "s_setprio 1" not in loop:
        return []
    parts[0] = last + parts[0]
    for part in parts:
        products = matrix_products(part)
        raised = "s_setprio 1" in part and "s_setprio 0" in part[part.index("s_setprio 1"):]
        kinds.append(("multiply " if raised and products else "products " if products else "")
                     + ("load " if any(line.startswith("ds_read") for line in part) else "")
                     + ("store " if any(line.startswith("ds_write") for line in part) else ""))
    first = kinds.index("store ") + 1 if "store " in kinds else 0
    return kinds[first:] + kinds[:first]


def matrix_products(lines):
    return [line for line in lines if line.startswith(("v_mfma", "v_wmma"))]


def others_a_product(kernel):
    """Of that loop, or None: how many other instructions it has for each matrix instruction."""
    loop = kernel.tile_loop()
    count = len(matrix_products(loop))
    return (len(loop) - count) / count if count else None


def dots(lines):
    return [line for line in lines if line.startswith("v_dot4")]


def instructions_a_weight(kernel):
    """Of the inner loop of a decode row on int8, or None. Each product of four bytes is of four weights."""
    loop = kernel.row_loop()
    return len(loop) / (4 * len(dots(loop))) if loop else None


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr.strip():
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def metadata(notes):
    """The fields of each kernel and its hidden arguments, by the kernel's name."""
    kernels = {}
    for part in re.split(r"\n  - (?=\.)", notes.split("amdhsa.kernels:")[-1].split("amdhsa.target:")[0])[1:]:
        fields = dict(match.groups() for line in ("    " + part).split("\n") if (match := FIELD.match(line)))
        kernels[fields["name"]] = (fields, re.findall(r"\.value_kind:\s+(hidden_\w+)", part))
    return kernels


PADDING = ("s_code_end", "s_nop 0")


def instructions(listing):
    """The lines of each function (Kernel.lines), by its name. Padding behind the last instruction is left out."""
    functions, lines, base = {}, None, 0
    for line in listing.split("\n"):
        if match := BEGIN.match(line):
            base, lines = int(match.group(1), 16), functions.setdefault(match.group(2), [])
        elif lines is not None and (match := LINE.match(line)):
            text, address, encoding, to = match.groups()
            branch = text.startswith(("s_cbranch", "s_branch"))
            lines.append((int(address, 16) - base, len(encoding) // 9 * 4, re.sub(r"\s+", " ", text),
                          int(to or "0", 16) if branch else None))
    for lines in functions.values():
        while lines and lines[-1][2].startswith(PADDING):
            lines.pop()
    return functions


def read(path, objdump, readelf):
    """Two tables by the name of a kernel: metadata() and instructions()."""
    return metadata(run(readelf, "--notes", path)), instructions(run(objdump, "-d", path))
