#!/usr/bin/env python3
"""make_settings.py: what the goldens' models say after a change of one key, or without one tensor, by the reference.

For each golden of make_architectures.py and make_converted.py, each key of its architecture's prefix and each change of it,
the config of transformers changes as architecture_cases/settings.py says, the weights stay, and the logits of the last
position in float64 go into settings.gguf. It has metadata only:

    "<golden>|<key or tensor>|<change>"   f32[tokens]: those logits
                                          string: why the change leaves the golden's own logits
                                          bool: there is no result

With names of goldens or of architectures, entries of the others stay as they are. A change without an entry has no result either: a file with it is refused. Changes: "removed", "x<number>" (times), "flipped" (a
bool), "element <index>" (of an array: times two, or flipped), "= <text>" (a string).
"""
import copy
import dataclasses
import os
import sys

import gguf
import numpy as np
import torch
import transformers

sys.dont_write_bytecode = True
import make_architectures as make
from architecture_cases import CASES
from architecture_cases.converted import CONVERTED
from architecture_cases.absent import ABSENT_TENSORS
from architecture_cases.recurrent_settings import RECURRENT
from architecture_cases.settings import REQUIRED, SETTINGS, NoChange, NoReference, State

TEXTS = ("none", "linear", "yarn", "longrope", "llama3", "banana")
# Of a changed model's logits against the golden's (NMSE): the tests tell one from the other above the first, and below the
# second they are the same, but for rounding. A change between the two would prove nothing.
LEAST_CHANGE, MOST_ROUNDING = 2e-7, 1e-10


def read(path, arch):
    """(keys of the prefix, names of tensors, tokens, logits)"""
    reader = gguf.GGUFReader(path)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    keys = {name.removeprefix(arch + "."): value for name, value in fields.items() if name.startswith(arch + ".")}
    return keys, {tensor.name for tensor in reader.tensors}, fields["golden.tokens"], fields["golden.logits"]


def changed(value, factors):
    """(name of a change, the value after it), of a value that is there."""
    if isinstance(value, bool):
        yield "flipped", not value
    elif isinstance(value, str):
        yield from ((f"= {text}", text) for text in TEXTS if text != value)
    elif isinstance(value, list):
        index = len(value) // 2
        element = not value[index] if isinstance(value[index], bool) else value[index] * 2
        yield f"element {index}", value[:index] + [element] + value[index + 1:]
    else:
        for factor in factors:
            after = int(value * factor) if isinstance(value, int) else float(np.float32(value) * np.float32(factor))
            yield f"x{factor:g}", after


def is_same(a, b):
    return type(a) in (int, float, bool, str) and type(b) in (int, float, bool, str) and a == b


class Golden:
    def __init__(self, case):
        self.case = case
        self.keys, self.tensors, self.tokens, logits = read(f"{make.FOLDER}/{case.name}.gguf", case.arch)
        model = make.filled(case)[0]
        self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        self.logits = np.array(logits, np.float64).reshape(len(self.tokens), -1)[-1]
        assert self.difference(self.run(self.state())) < make.F32_LIMIT, f"{case.name}: the weights are not its own"

    def state(self):
        case = self.case
        config = copy.deepcopy(case.config)
        return State(case.arch, case.model, self.keys, case.context, self.tensors, config)

    def run(self, state):
        with make.double_everywhere():
            model = make.build(dataclasses.replace(self.case, config=state.config)).double()
            for name, tensor in model.state_dict(keep_vars=True).items():
                tensor.data = self.weights[name].double()
            for hook in state.hooks:
                hook(model)
            return make.logits_of(model, self.tokens)[-1].numpy()

    def difference(self, logits):
        return ((logits - self.logits) ** 2).sum() / (self.logits ** 2).sum()

    def result(self, apply):
        """Logits, or why there are no new ones, or None where the reference has none."""
        state = self.state()
        try:
            apply(state)
        except NoChange as reason:
            return str(reason)
        except NoReference:
            return None
        return self.run(state)

    def key_results(self, key, value):
        setting = (SETTINGS | RECURRENT).get(key)
        if not setting:
            return
        for name, after in changed(value, setting.factors):
            if is_same(value, after) or (isinstance(value, list) and value == after):
                yield name, "twice nothing is nothing"
            else:
                yield name, self.result(lambda state: setting.apply(state, after))
        default = setting.default(self.state()) if callable(setting.default) else setting.default
        if default is REQUIRED:
            return
        if is_same(value, default):
            yield "removed", "it is what an absent one means"
        else:
            yield "removed", self.result(lambda state: setting.apply(state, default))

    def results(self):
        for key, value in self.keys.items():
            for change, result in self.key_results(key, value):
                yield f"{key}|{change}", result
        for tensor, apply in ABSENT_TENSORS.items():
            if tensor in self.tensors:
                yield f"{tensor}|removed", self.result(apply)


def add(writer, golden, name, result):
    """Counts: (logits, reasons)."""
    if isinstance(result, str):
        writer.add_string(f"{golden.case.name}|{name}", result)
        return 0, 1
    if result is None:
        if name.split("|x")[-1] not in ("2", name):  # another number than the tests try anyway
            writer.add_bool(f"{golden.case.name}|{name}", False)
        return 0, 0
    difference = golden.difference(result)
    print(f"{golden.case.name + ' ' + name:90} {difference:.1e}")
    if difference < MOST_ROUNDING:
        return add(writer, golden, name, "the reference says the same")
    assert difference > LEAST_CHANGE, f"{name}: a change of {difference}"
    writer.add_array(f"{golden.case.name}|{name}", result.astype(np.float32).tolist())
    return 1, 0


def keep(writer, name, entry):
    value = entry.contents()
    add = {bool: writer.add_bool, str: writer.add_string, list: writer.add_array}[type(value)]
    add(name, value)


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    path = os.path.join(os.path.dirname(make.FOLDER), "settings.gguf")
    kept = gguf.GGUFReader(path).fields if sys.argv[1:] else {}
    writer = gguf.GGUFWriter(path, "none")
    counts = [0, 0]
    for case in CASES + CONVERTED:
        if sys.argv[1:] and case.name not in sys.argv[1:] and case.arch not in sys.argv[1:]:
            for name, entry in kept.items():
                if name.startswith(case.name + "|"):
                    keep(writer, name, entry)
            continue
        golden = Golden(case)
        for name, result in golden.results():
            counts = [sum(pair) for pair in zip(counts, add(writer, golden, name, result))]
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{counts[0]} results, {counts[1]} reasons, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
