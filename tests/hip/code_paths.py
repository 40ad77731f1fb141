"""The ways through the machine code of a kernel: its loops, and how long loads of a loop are under way."""
import heapq
import re

import machine_code

WAIT = re.compile(r"s_wait(?:cnt\b.*\bvmcnt\((\d+)\)|_loadcnt(?:_dscnt)? 0x([0-9a-f]+))")
LOAD = ("global_load", "buffer_load")
NO_WAY_ON = ("s_endpgm", "s_branch")
MOST_COUNTED = 63  # accesses that a wait can leave under way


class Paths:
    """An instruction is its index in kernel.lines."""

    def __init__(self, kernel):
        self.texts = [line[2] for line in kernel.lines]
        self.counted = ("global_", "buffer_") if kernel.wide else LOAD  # gfx9 counts stores among the loads
        index = {line[0]: i for i, line in enumerate(kernel.lines)}
        self.following = [[] for _ in self.texts]
        self.before = [[] for _ in self.texts]
        for i, (_, _, text, to) in enumerate(kernel.lines):
            if not text.startswith(NO_WAY_ON) and i + 1 < len(self.texts):
                self.following[i].append(i + 1)
            if to in index:
                self.following[i].append(index[to])
            for j in self.following[i]:
                self.before[j].append(i)

    def ways_back(self):
        """Pairs of the last instruction of a loop and its first one, through which all ways into the loop go."""
        pairs, open_ways, stack = [], {0: True}, [(0, iter(self.following[0]))]
        while stack:
            i, following = stack[-1]
            j = next(following, None)
            if j is None:
                open_ways[i] = False
                stack.pop()
            elif j not in open_ways:
                open_ways[j] = True
                stack.append((j, iter(self.following[j])))
            elif open_ways[j]:
                pairs.append((i, j))
        return pairs

    def loops(self):
        """The instructions of each innermost loop, wherever the compiler has put them."""
        bodies = {}
        for last, first in self.ways_back():
            body, found = bodies.setdefault(first, {first}), [last]
            while found:
                i = found.pop()
                if i not in body:
                    body.add(i)
                    found += self.before[i]
        return [body for body in bodies.values() if not any(other < body for other in bodies.values())]

    def shortest(self, starts, is_end):
        """How many instructions lie before one that is an end, on the shortest way from any of the starts. Lanes are
        left everywhere: no branch around what no lane does is taken."""
        queue, seen = [(0, i) for i in sorted(starts)], set()
        while queue:
            count, i = heapq.heappop(queue)
            if is_end(i):
                return count
            if i not in seen:
                seen.add(i)
                some_lanes = self.texts[i].startswith("s_cbranch_execz")
                for j in self.following[i][:1] if some_lanes else self.following[i]:
                    heapq.heappush(queue, (count + 1, j))
        return None

    def products_to_wait(self, load):
        """The fewest matrix instructions between a load and the wait for it, over all ways that begin there."""
        queue, seen = [(0, 0, load)], set()
        while queue:
            products, younger, i = heapq.heappop(queue)
            for j in self.following[i]:
                text = self.texts[j]
                wait = WAIT.match(text)
                if wait and (int(wait[1]) if wait[1] else int(wait[2], 16)) <= younger:
                    return products
                counted = min(younger + text.startswith(self.counted), MOST_COUNTED)
                if (counted, j) not in seen:
                    seen.add((counted, j))
                    heapq.heappush(queue, (products + bool(machine_code.matrix_products([text])), counted, j))
        return None


def products_under_way(kernel):
    """Of each innermost loop with matrix instructions and loads of memory, how many of these instructions lie at least
    between any of its loads and the wait for it: the largest first."""
    paths, found = Paths(kernel), []
    for body in paths.loops():
        if machine_code.matrix_products([paths.texts[i] for i in body]):
            loads = [paths.products_to_wait(i) for i in body if paths.texts[i].startswith(LOAD)]
            found += [min(count for count in loads if count is not None)] if loads else []
    return sorted(found, reverse=True)


def whole_group_a_weight(kernel, rounds):
    """Instructions of a wave of a decode row for each weight, with all before and behind the loop of row_loop(), where a
    lane goes through it so many times. It is the shortest such way; None without such a loop."""
    paths, row = Paths(kernel), kernel.row_loop()
    for body in paths.loops():
        if row and [paths.texts[i] for i in sorted(body)] == row:
            out = {j for i in body for j in paths.following[i] if j not in body}
            before = paths.shortest([0], body.__contains__)
            behind = paths.shortest(out, lambda i: paths.texts[i].startswith("s_endpgm"))
            if before is not None and behind is not None:
                return (before + rounds * len(body) + behind) / (rounds * 4 * len(machine_code.dots(row)))
    return None
