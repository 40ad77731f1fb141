"""Reads every #include line and refuses those that go against the layers.

    layers_test.py ROOT

A file under src/<layer> includes its own layer, the umbrella header of the layer directly below, and
platform/platform.h. Two layers stand beside these: src/text includes gguf/gguf.h and src/gguf the table of tensor types,
compute/quant_type.h; src/engine includes text/text.h and gguf/gguf.h. Backends include runtime/device.h, runtime/held_queue.h, runtime/sharing.h and platform, kernels only kernels, models only
engine/arch.h, src/selftest tune/harness.h, tools greta.h and tools/common, bindings only greta.h. Headers in <> are those of the system and the language,
except in kernels, which are freestanding. src/api/compute, behind greta_compute.h, reaches further down (COMPUTE).
"""
import os
import re
import sys

# Beside them, since they need no device: what each includes beside itself and platform/platform.h.
ASIDE = {"text": {"gguf/gguf.h"}, "gguf": {"compute/quant_type.h"}}
LAYERS = ["api", "engine", "graph", "tune", "compute", "runtime"]  # from top to bottom
FOLDERS = ["src", "backends", "kernels", "models", "tools", "bindings"]
SOURCES = (".h", ".hpp", ".c", ".cpp", ".def", ".inc", ".hip", ".comp", ".glsl")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>|(\w.*))')

# What one layer may include beside the rule, with the reason.
ALSO = {
    "api": {"greta.h": "it implements the public header", "selftest/selftest.h": "it hands the self-test out"},
    "compute": {
        "kernel_code.inc": "written by the CMake lines that compile the kernels",
        "kernel_rows.inc": "written by the CMake lines that compile the kernels",
    },
    "engine": {
        "arch_list.inc": "written by CMake from the files in models/",
        "gguf/gguf.h": "it reads models' files",
        "text/text.h": "it turns text into tokens and back",
    },
    "tune": {"built_in_tables.inc": "written by CMake from the tables that are compiled in"},
}
# What src/api/compute may include beside src/api, with the reason.
COMPUTE = {
    "greta_compute.h": "it implements this public header",
    "compute/groups.h": "weights of other files become those of GGUF",
    "graph/graph.h": "its calls are plans of ops",
    "graph/hazards.h": "it derives the barriers of streams",
    "runtime/heap.h": "buffers come and go",
    "runtime/sharing.h": "it adopts what its host has, and shares memory",
}
# Kernels are freestanding. What hosted C they may see, by folder.
KERNEL_SYSTEM = {"cpu": {"stdint.h", "immintrin.h"}, "hip": {"stdint.h"}, "abi": {"stdint.h"}, "gpu": set(),
                 "vulkan": set()}
SHARED = {"abi", "gpu"}  # folders of kernels that several backends include


def refuse_src(parts, name):
    layer = parts[1]
    if name in ALSO.get(layer, {}) or (parts[1:3] == ["api", "compute"] and name in COMPUTE):
        return None
    if name.startswith("api/compute/") and parts[1:3] != ["api", "compute"]:
        return "the handles of greta_compute.h are known in src/api/compute alone"
    if name.startswith(layer + "/"):
        return None
    if layer == "platform":
        return "platform includes only platform"
    if layer == "selftest":  # beside the layers: single ops against their oracles
        own = name in ("tune/harness.h", "platform/platform.h", "compute/quant_types.def")
        if own or name.startswith(("kernels/abi/", "kernels/tables/")):
            return None
        return "src/selftest may include selftest/*, tune/harness.h, quant_types.def, kernels/{abi,tables}/* and platform"
    if layer in ASIDE:
        allowed = {"platform/platform.h", *ASIDE[layer]}
        return None if name in allowed else f"src/{layer} may include {layer}/* and {sorted(allowed)}"
    if layer not in LAYERS:
        return f"src/{layer} is no layer"
    if name == "platform/platform.h":
        return None
    if layer == "compute" and name.startswith("kernels/abi/"):
        return None  # the argument blocks that both sides share
    below = LAYERS[LAYERS.index(layer) + 1] if layer != LAYERS[-1] else None
    if below and name == f"{below}/{below}.h":
        return None
    allowed = f"{layer}/*, " + (f"{below}/{below}.h, " if below else "") + "platform/platform.h"
    return f"src/{layer} may include {allowed}"


def refuse(path, name, system, root):
    """Why the file at `path` may not include `name`, or None. `path` is relative to ROOT."""
    parts = path.split("/")
    if parts[0] == "kernels":
        if system:
            allowed = KERNEL_SYSTEM.get(parts[1], set())
            return None if name in allowed else f"kernels are freestanding: <> is for {sorted(allowed)}"
        own = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if parts[1] in SHARED and name.startswith(tuple(f"kernels/{backend}/" for backend in KERNEL_SYSTEM if backend not in SHARED)):
            return f"kernels/{parts[1]} is for several backends, and includes nothing of one of them"
        if name.startswith("kernels/") or own.startswith("kernels/") and os.path.isfile(os.path.join(root, own)):
            return None
        return "kernels include only kernels"
    if system:
        return None
    if parts[0] == "src":
        return refuse_src(parts, name)
    if parts[0] == "backends":
        own = name.startswith(f"backends/{parts[1]}/") or beside(path, name, root)
        if own or name in ("runtime/device.h", "runtime/held_queue.h", "runtime/sharing.h", "platform/platform.h"):
            return None
        return "a backend includes runtime/{device,held_queue,sharing}.h, platform/platform.h and its own folder"
    if parts[0] == "models":
        return None if name == "engine/arch.h" else "a model includes engine/arch.h"
    if name == "serve/serve.h" and parts[1] == "cli":  # the one header of the server that its program needs
        return None
    if name == "greta.h" or beside(path, name, root):  # tools, bindings
        return None
    if parts[0] == "tools":
        if name.startswith("common/") and os.path.isfile(os.path.join(root, "tools", name)):  # what programs share
            return None
        return "programs include greta.h, tools/common and their own folder"
    return f"{parts[0]} include greta.h and their own folder"


def beside(path, name, root):
    """`name`, from the including file's folder or from the tree's top, is a file of the including file's own tree."""
    top = "/".join(path.split("/")[:2])
    targets = [os.path.normpath(os.path.join(folder, name)) for folder in (os.path.dirname(path), top)]
    return any(target.startswith(top + "/") and os.path.isfile(os.path.join(root, target)) for target in targets)


def violations(root):
    for top in FOLDERS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for file in sorted(names):
                if not file.endswith(SOURCES):
                    continue
                full = os.path.join(folder, file)
                path = os.path.relpath(full, root).replace(os.sep, "/")
                for number, line in enumerate(open(full, encoding="utf-8"), 1):
                    match = INCLUDE.match(line)
                    if not match:
                        continue
                    quoted, system, macro = match.groups()
                    if macro:  # a header named by the build: decode headers of kernels
                        reason = None if top == "kernels" else "only kernels include a header by a macro"
                    else:
                        reason = refuse(path, quoted or system, bool(system), root)
                    if reason:
                        yield f"{path}:{number}: {line.strip()}\n    {reason}"


# Planted once and for all: each must be refused, or this test is blind.
PLANTED = [
    ("src/platform/x.cpp", "runtime/device.h", False),
    ("src/runtime/x.cpp", "compute/compute.h", False),
    ("src/runtime/x.cpp", "platform/threads/thread_pool.h", False),
    ("src/compute/x.cpp", "runtime/device.h", False),
    ("src/compute/x.cpp", "kernels/cpu/scratch.h", False),
    ("src/tune/x.cpp", "graph/graph.h", False),
    ("src/graph/x.cpp", "compute/compute.h", False),
    ("src/engine/x.cpp", "tune/tune.h", False),
    ("src/engine/x.cpp", "text/tokenizer/tokenizer.h", False),
    ("src/text/x.cpp", "graph/graph.h", False),
    ("src/text/x.cpp", "engine/engine.h", False),
    ("src/gguf/x.cpp", "text/text.h", False),
    ("src/gguf/x.cpp", "compute/compute.h", False),
    ("src/engine/x.cpp", "greta.h", False),
    ("src/engine/x.cpp", "kernels/abi/ops.h", False),
    ("src/api/x.cpp", "graph/graph.h", False),
    ("src/api/x.cpp", "engine/session/session.h", False),
    ("src/api/x.cpp", "greta_compute.h", False),
    ("src/api/x.cpp", "api/compute/objects.h", False),
    ("src/api/compute/x.cpp", "compute/compute.h", False),
    ("src/api/compute/x.cpp", "runtime/runtime.h", False),
    ("src/engine/x.cpp", "greta_compute.h", False),
    ("src/misc/x.cpp", "platform/platform.h", False),
    ("backends/cpu/x.cpp", "kernels/cpu/scratch.h", False),
    ("backends/cpu/x.cpp", "runtime/runtime.h", False),
    ("backends/cpu/x.cpp", "backends/vulkan/x.h", False),
    ("backends/vulkan/x.cpp", "kernels/abi/chain.h", False),
    ("kernels/cpu/x.cpp", "runtime/device.h", False),
    ("kernels/cpu/x.cpp", "../../src/compute/op.h", False),
    ("kernels/cpu/x.cpp", "math.h", True),
    ("kernels/hip/x.hip", "hip/hip_runtime.h", True),
    ("kernels/gpu/x.h", "kernels/vulkan/device.h", False),
    ("kernels/abi/x.h", "kernels/hip/device.h", False),
    ("src/selftest/x.cpp", "graph/graph.h", False),
    ("models/x.cpp", "engine/engine.h", False),
    ("tools/cli/x.cpp", "engine/engine.h", False),
    ("tools/cli/x.cpp", "serve/server.h", False),
    ("tools/serve/x.cpp", "console.h", False),
    ("tools/common/x.cpp", "cli/console.h", False),
    ("tools/common/x.cpp", "engine/engine.h", False),
    ("bindings/python/x.cpp", "common/handles.h", False),
    ("tools/cli/x.cpp", "../../src/engine/engine.h", False),
    ("tools/cli/bench/x.cpp", "../../../src/engine/engine.h", False),
]


def main():
    root = sys.argv[1]
    blind = [planted for planted in PLANTED if not refuse(*planted, root)]
    for path, name, _ in blind:
        print(f"the test does not see {path} including {name}")
    found = list(violations(root))
    for violation in found:
        print(violation)
    if blind or found:
        sys.exit(1)
    print("every include follows the layers")


main()
