"""Reads the text of /metrics."""
import re

LINE = re.compile(r'^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')


def parse(text):
    """[(name, labels, value)] of the samples."""
    found = []
    for line in text.splitlines():
        if match := LINE.match(line):
            found.append((match[1], dict(LABEL.findall(match[2] or "")), float(match[3])))
    return found


def total(samples, name):
    """The sum of all samples of this name, over their labels."""
    return sum(value for each, _, value in samples if each == name)
