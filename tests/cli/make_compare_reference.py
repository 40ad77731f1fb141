"""Writes compare_reference.json: what scipy says of sets of numbers, for compare_test.py.

    make_compare_reference.py > compare_reference.json
"""
import json
import random
import sys

import numpy
import scipy
from scipy import stats


def interval(a, b):
    """That of Hodges and Lehmann, from its definition: ratios that stay when U's tails of 2.5 % are cut off."""
    ratios = numpy.sort((numpy.array(b)[:, None] / numpy.array(a)[None, :]).ravel())
    pairs = len(ratios)
    if pairs <= 2500:
        cut = 0
        while cut < pairs // 2 and stats.mannwhitneyu(
                *split(len(a), len(b), cut), alternative="less", method="exact").pvalue <= 0.025:
            cut += 1
    else:
        cut = int(pairs / 2 - stats.norm.ppf(0.975) * (pairs * (len(a) + len(b) + 1) / 12) ** 0.5)
    cut = max(cut, 1)
    return float(numpy.median(ratios)), float(ratios[cut - 1]), float(ratios[pairs - cut])


def split(n, m, u):
    """Two sets of n and m numbers whose U is u."""
    first = list(range(n))
    at = n - 1
    while u > 0:  # the largest moves past as many of the others as it can
        step = min(u, m)
        first[at] += step
        u, at = u - step, at - 1
    others = [value for value in range(n + m) if value not in first]
    return first, others


def sets():
    draw = random.Random(7)
    for n, m, shift, digits in [(6, 6, 0, 9), (6, 6, 0.1, 9), (8, 30, 0.01, 9), (10, 10, 0, 9), (10, 10, 0.02, 9),
                                (9, 40, 0.005, 9), (7, 7, 0.02, 2), (12, 15, 0, 2), (5, 9, 0.3, 9), (60, 70, 0.003, 9),
                                (1, 1, 0, 9), (20, 20, 0.01, 3), (6, 6, 9, 9), (10, 10, 0, 0)]:
        yield ([round(draw.gauss(1, 0.02), digits) for _ in range(n)],
               [round((1 + shift) * draw.gauss(1, 0.02), digits) for _ in range(m)])


def main():
    rows = []
    for a, b in sets():
        found = stats.mannwhitneyu(a, b)
        ratio, low, high = interval(a, b)
        rows.append({"a": a, "b": b, "u": float(found.statistic), "p": float(found.pvalue), "ratio": ratio,
                     "ratio_low": low, "ratio_high": high})
    mean = float(stats.gmean([row["ratio"] for row in rows]))
    json.dump({"scipy": scipy.__version__, "sets": rows, "geometric_mean": mean}, sys.stdout, indent=0)
    print()


if __name__ == "__main__":
    main()
