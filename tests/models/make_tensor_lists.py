#!/usr/bin/env python3
"""make_tensor_lists.py: writes tensor_lists.tsv, the tensors of all architectures that the package `gguf` knows.

A line for each architecture, parted by tabs: its name in GGUF files, then the names of its tensors without their endings;
"*" stands for the layer. The file here was made with the `gguf` that belongs to llama.cpp 0.7.0.
"""
import pathlib

from gguf import constants


def main():
    lines = []
    for arch, tensors in constants.MODEL_TENSORS.items():
        names = {constants.TENSOR_NAMES[tensor].format(bid="*", xid="*")
                 for tensor in tensors if tensor in constants.TENSOR_NAMES}
        lines.append("\t".join([constants.MODEL_ARCH_NAMES[arch], *sorted(names)]))
    pathlib.Path(__file__).with_name("tensor_lists.tsv").write_text("\n".join(sorted(lines)) + "\n")


if __name__ == "__main__":
    main()
