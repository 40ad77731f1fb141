#!/usr/bin/env python3
"""Writes a GGUF file with random weights in the published shape of a model, for the figures of
docs/performance.md. Needs numpy.

  bench/make_shape.py SHAPE OUT.gguf --vocab FILE [--layers N] [--types q4_k_m] [--head]

SHAPE is one of the names of `SHAPES`. The tokenizer is copied from --vocab, any GGUF file, and its number
of tokens is the vocabulary. Tensors have the types that llama-quantize's mix of that name gives them. Blocks
have random bits, and scales that give weights a standard deviation of 0.02. --layers keeps the first N
layers. --head adds the layer that drafts tokens, for shapes that have one.
"""
import argparse
import struct
import sys

import numpy as np

F32, F16, Q4_0, Q5_0, Q8_0, Q4_K, Q5_K, Q6_K, BF16 = 0, 1, 2, 6, 8, 12, 13, 14, 30
BLOCK = {F32: (1, 4), F16: (1, 2), BF16: (1, 2), Q4_0: (32, 18), Q5_0: (32, 22), Q8_0: (32, 34),
         Q4_K: (256, 144), Q5_K: (256, 176), Q6_K: (256, 210)}  # weights, bytes
# (most tensors, the larger ones of a mix, file_type of GGUF)
MIXES = {"q4_k_m": (Q4_K, Q6_K, 15), "q4_0": (Q4_0, Q6_K, 2), "q8_0": (Q8_0, Q8_0, 7), "f16": (F16, F16, 1)}
WITHOUT_BLOCKS_OF_256 = {Q4_K: Q5_0, Q5_K: Q5_0, Q6_K: Q8_0}  # where rows are no multiple of 256, as llama-quantize does
DEVIATION = 0.02

KEY_U32, KEY_F32, KEY_STRING, KEY_ARRAY, KEY_BOOL = 4, 6, 8, 9, 7
FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of values by GGUF type


def packed_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def key(name, value):
    """A key with a number, a boolean, a text, or a list of numbers or of booleans."""
    head = packed_string(name)
    if isinstance(value, bool):
        return head + struct.pack("<I?", KEY_BOOL, value)
    if isinstance(value, str):
        return head + struct.pack("<I", KEY_STRING) + packed_string(value)
    if isinstance(value, list) and isinstance(value[0], bool):
        return head + struct.pack("<IIQ", KEY_ARRAY, KEY_BOOL, len(value)) + bytes(value)
    if isinstance(value, list):
        return head + struct.pack(f"<IIQ{len(value)}I", KEY_ARRAY, KEY_U32, len(value), *value)
    if isinstance(value, float):
        return head + struct.pack("<If", KEY_F32, value)
    return head + struct.pack("<II", KEY_U32, value)


def tokenizer_of(path):
    """The keys of a file's tokenizer as they are, and its number of tokens."""
    data = open(path, "rb").read()
    magic, version, _, count = struct.unpack_from("<4sIQQ", data)
    if magic != b"GGUF" or version < 2:
        sys.exit(f"{path} is no GGUF file")

    def after(at, kind):
        if kind in FIXED:
            return at + FIXED[kind]
        if kind == KEY_STRING:
            return at + 8 + struct.unpack_from("<Q", data, at)[0]
        kind, length = struct.unpack_from("<IQ", data, at)
        at += 12
        if kind in FIXED:
            return at + length * FIXED[kind]
        for _ in range(length):
            at = after(at, kind)
        return at

    at, keys, tokens = 24, [], 0
    for _ in range(count):
        begin = at
        length, = struct.unpack_from("<Q", data, at)
        name = data[at + 8:at + 8 + length].decode()
        at += 8 + length
        kind, = struct.unpack_from("<I", data, at)
        if name == "tokenizer.ggml.tokens":
            tokens = struct.unpack_from("<IQ", data, at + 4)[1]
        at = after(at + 4, kind)
        if name.startswith("tokenizer."):
            keys.append(data[begin:at])
    return keys, tokens


class Layers:
    """The tensors of a file: (name, dimensions as in GGUF, kind), where a kind is a row of `type_of`."""

    def __init__(self):
        self.tensors = []

    def add(self, name, *dims, kind="plain"):
        self.tensors.append((name, dims, kind))

    def layer(self, index, **tensors):
        for name, (kind, *dims) in tensors.items():
            self.add(f"blk.{index}.{name.replace('__', '.')}.weight", *dims, kind=kind)

    def one(self, index, name, *dims):
        self.add(f"blk.{index}.{name}", *dims, kind="one")

    def dense(self, index, width, inner):
        self.layer(index, ffn_gate=("plain", width, inner), ffn_up=("plain", width, inner),
                   ffn_down=("down", inner, width))


def llama(s, t, n):
    width, head, heads, kv = s["width"], s["head"], s["heads"], s["kv"]
    for i in range(n):
        t.layer(i, attn_norm=("one", width), attn_q=("plain", width, heads * head),
                attn_k=("plain", width, kv * head), attn_v=("value", width, kv * head),
                attn_output=("plain", heads * head, width), ffn_norm=("one", width))
        if s.get("head_norms"):
            t.layer(i, attn_q_norm=("one", head), attn_k_norm=("one", head))
        if "experts" not in s:
            t.dense(i, width, s["inner"])
            continue
        inner, experts = s["expert_inner"], s["experts"]
        t.layer(i, ffn_gate_inp=("float", width, experts), ffn_gate_exps=("plain", width, inner, experts),
                ffn_up_exps=("plain", width, inner, experts), ffn_down_exps=("down", inner, width, experts))
    keys = {"attention.head_count": heads, "attention.head_count_kv": kv, "attention.key_length": head,
            "attention.value_length": head, "rope.dimension_count": head, "feed_forward_length": s["inner"]}
    if "experts" in s:
        keys |= {"expert_count": s["experts"], "expert_used_count": s["used"],
                 "expert_feed_forward_length": s["expert_inner"]}
    return keys


def qwen35_attention(s, t, i):
    width, head = s["width"], s["head"]
    t.layer(i, attn_q=("plain", width, 2 * s["heads"] * head), attn_k=("plain", width, s["kv"] * head),
            attn_v=("value", width, s["kv"] * head), attn_output=("plain", s["heads"] * head, width),
            attn_q_norm=("one", head), attn_k_norm=("one", head))


def qwen35_block(s, t, i):
    width = s["width"]
    t.layer(i, attn_norm=("one", width), post_attention_norm=("one", width))
    if "experts" not in s:
        t.dense(i, width, s["inner"])
        return
    inner, shared, experts = s["expert_inner"], s["shared"], s["experts"]
    t.layer(i, ffn_gate_inp=("float", width, experts), ffn_gate_inp_shexp=("float", width, 1),
            ffn_gate_exps=("plain", width, inner, experts), ffn_up_exps=("plain", width, inner, experts),
            ffn_down_exps=("down", inner, width, experts), ffn_gate_shexp=("plain", width, shared),
            ffn_up_shexp=("plain", width, shared), ffn_down_shexp=("down", shared, width))


def qwen35(s, t, n):
    width, size, groups, states = s["width"], s["state"], s["groups"], s["states"]
    inner, mixed = states * size, (2 * groups + states) * size
    for i in range(n):
        if i % 4 == 3:
            qwen35_attention(s, t, i)
        else:
            t.layer(i, attn_qkv=("fused", width, mixed), attn_gate=("plain", width, inner),
                    ssm_conv1d=("float", 4, mixed), ssm_beta=("plain", width, states),
                    ssm_alpha=("plain", width, states), ssm_norm=("one", size),
                    ssm_out=("plain", inner, width))
            t.add(f"blk.{i}.ssm_dt.bias", states, kind="one")
            t.add(f"blk.{i}.ssm_a", states, kind="minus one")
        qwen35_block(s, t, i)
    if s["with_head"]:
        qwen35_attention(s, t, n)
        qwen35_block(s, t, n)
        t.layer(n, nextn__eh_proj=("plain", 2 * width, width), nextn__enorm=("one", width),
                nextn__hnorm=("one", width), nextn__shared_head_norm=("one", width))
    keys = {"attention.head_count": s["heads"], "attention.head_count_kv": s["kv"], "attention.key_length": s["head"],
            "attention.value_length": s["head"], "rope.dimension_count": s["head"] // 4,
            "rope.dimension_sections": [11, 11, 10, 0], "ssm.conv_kernel": 4, "ssm.state_size": size,
            "ssm.group_count": groups, "ssm.time_step_rank": states, "ssm.inner_size": inner,
            "full_attention_interval": 4}
    if s["with_head"]:
        keys["nextn_predict_layers"] = 1
    if "experts" not in s:
        return keys | {"feed_forward_length": s["inner"]}
    return keys | {"expert_count": s["experts"], "expert_used_count": s["used"],
                   "expert_feed_forward_length": s["expert_inner"],
                   "expert_shared_feed_forward_length": s["shared"]}


def granitehybrid(s, t, n):
    width, head, heads, kv = s["width"], s["head"], s["heads"], s["kv"]
    size, groups, states = s["state"], s["groups"], s["states"]
    inner, mixed = states * 64, states * 64 + 2 * groups * size
    attends = [i % 10 == 5 for i in range(n)]
    for i in range(n):
        t.layer(i, attn_norm=("one", width), ffn_norm=("one", width))
        t.dense(i, width, s["inner"])
        if attends[i]:
            t.layer(i, attn_q=("plain", width, heads * head), attn_k=("plain", width, kv * head),
                    attn_v=("value", width, kv * head), attn_output=("plain", heads * head, width))
            continue
        t.layer(i, ssm_in=("plain", width, inner + mixed + states), ssm_conv1d=("float", 4, mixed),
                ssm_norm=("one", inner // groups, groups), ssm_out=("plain", inner, width))
        t.one(i, "ssm_conv1d.bias", mixed)
        t.one(i, "ssm_dt.bias", states)
        t.one(i, "ssm_d", 1, states)
        t.add(f"blk.{i}.ssm_a", 1, states, kind="minus one")
    return {"attention.head_count": heads, "attention.head_count_kv": [kv if at else 0 for at in attends],
            "rope.dimension_count": head, "rope.scaling.finetuned": False, "feed_forward_length": s["inner"],
            "expert_count": 0, "expert_used_count": 0, "expert_shared_feed_forward_length": s["inner"],
            "attention.scale": 1 / head, "embedding_scale": 12.0, "residual_scale": 0.22, "logit_scale": 6.0,
            "ssm.conv_kernel": 4, "ssm.state_size": size, "ssm.group_count": groups, "ssm.inner_size": inner,
            "ssm.time_step_rank": states}


def gemma4(s, t, n):
    width, heads = s["width"], s["heads"]
    window = [i % 6 != 5 for i in range(n)]
    kv = [s["kv"] if local else s["global_kv"] for local in window]
    t.add("rope_freqs.weight", 256, kind="one")
    for i in range(n):
        head = 256 if window[i] else 512
        t.layer(i, attn_norm=("one", width), attn_q=("plain", width, heads * head),
                attn_k=("plain", width, kv[i] * head), attn_output=("plain", heads * head, width),
                attn_q_norm=("one", head), attn_k_norm=("one", head), post_attention_norm=("one", width),
                ffn_norm=("one", width), post_ffw_norm=("one", width), layer_output_scale=("one", 1))
        if window[i]:
            t.layer(i, attn_v=("value", width, kv[i] * head))
        t.dense(i, width, s["inner"])
        if "experts" in s:
            inner, experts = s["expert_inner"], s["experts"]
            t.layer(i, ffn_gate_inp=("float", width, experts),
                    ffn_gate_up_exps=("plain", width, 2 * inner, experts),
                    ffn_down_exps=("down", inner, width, experts), pre_ffw_norm_2=("one", width),
                    post_ffw_norm_1=("one", width), post_ffw_norm_2=("one", width))
            t.one(i, "ffn_gate_inp.scale", width)
            t.one(i, "ffn_down_exps.scale", experts)
    keys = {"attention.head_count": heads, "attention.head_count_kv": kv, "attention.key_length": 512,
            "attention.value_length": 512, "attention.key_length_swa": 256, "attention.value_length_swa": 256,
            "rope.dimension_count": 512, "rope.dimension_count_swa": 256, "rope.freq_base_swa": 10000.0,
            "attention.sliding_window": 1024, "attention.sliding_window_pattern": window,
            "attention.shared_kv_layers": 0, "embedding_length_per_layer_input": 0,
            "final_logit_softcapping": 30.0, "feed_forward_length": s["inner"]}
    if "experts" in s:
        keys |= {"expert_count": s["experts"], "expert_used_count": s["used"],
                 "expert_feed_forward_length": s["expert_inner"]}
    return keys


SHAPES = {
    "llama3-8b": dict(arch="llama", build=llama, layers=32, width=4096, heads=32, kv=8, head=128, inner=14336,
                      base=500000.0),
    "llama3.2-1b": dict(arch="llama", build=llama, layers=16, width=2048, heads=32, kv=8, head=64, inner=8192,
                        base=500000.0, tied=True),
    "llama3-70b": dict(arch="llama", build=llama, layers=80, width=8192, heads=64, kv=8, head=128, inner=28672,
                       base=500000.0),
    "tinyllama-1.1b": dict(arch="llama", build=llama, layers=22, width=2048, heads=32, kv=4, head=64, inner=5632,
                           base=10000.0),
    "qwen3-30b-a3b": dict(arch="qwen3moe", build=llama, layers=48, width=2048, heads=32, kv=4, head=128,
                          inner=6144, experts=128, used=8, expert_inner=768, head_norms=True, base=1000000.0),
    "qwen3.5-27b": dict(arch="qwen35", build=qwen35, layers=64, width=5120, heads=24, kv=4, head=256, inner=17408,
                        state=128, groups=16, states=48, base=10000000.0),
    "qwen3.5-9b": dict(arch="qwen35", build=qwen35, layers=32, width=4096, heads=16, kv=4, head=256, inner=12288,
                       state=128, groups=16, states=32, base=10000000.0),
    "qwen3.5-35b-a3b": dict(arch="qwen35moe", build=qwen35, layers=40, width=2048, heads=16, kv=2, head=256,
                            experts=256, used=8, expert_inner=512, shared=512, state=128, groups=16, states=32,
                            base=10000000.0),
    "qwen3.5-2b": dict(arch="qwen35", build=qwen35, layers=24, width=2048, heads=8, kv=2, head=256, inner=6144,
                       state=128, groups=16, states=16, base=10000000.0, tied=True),
    "granite4-h-1b": dict(arch="granitehybrid", build=granitehybrid, layers=40, width=1536, heads=12, kv=4, head=128,
                          inner=4096, state=128, groups=1, states=48, base=10000.0, tied=True),
    "gemma4-31b": dict(arch="gemma4", build=gemma4, layers=60, width=5376, heads=32, kv=16, global_kv=4,
                       inner=21504, base=1000000.0, tied=True),
    "gemma4-26b-a4b": dict(arch="gemma4", build=gemma4, layers=30, width=2816, heads=16, kv=8, global_kv=2,
                           inner=2112, experts=128, used=8, expert_inner=704, base=1000000.0, tied=True),
}


def type_of(mix, kind, dims, name, layers):
    """The type that llama-quantize gives a tensor in a mix."""
    if kind in ("one", "minus one", "float"):
        return F32
    plain, larger, _ = MIXES[mix]
    chosen = plain
    if mix == "q4_k_m" and kind in ("value", "down"):
        layer = int(name.split(".")[1])
        if layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2:
            chosen = larger
    if kind == "output":
        chosen = larger
    if mix == "q4_k_m" and kind == "fused":
        chosen = Q5_K
    return WITHOUT_BLOCKS_OF_256.get(chosen, chosen) if dims[0] % 256 else chosen


class Weights:
    """Random blocks of each type, made once; a tensor is filled with slices of them."""

    def __init__(self):
        self.random = np.random.default_rng(1234)
        self.pools = {}

    def scales(self, blocks, mean):
        values = mean * self.random.uniform(0.75, 1.25, blocks)
        return values.astype(np.float16).view(np.uint8).reshape(blocks, 2)

    def pool(self, kind):
        if kind in (F16, BF16, F32):
            values = self.random.standard_normal(1 << 23, dtype=np.float32) * np.float32(DEVIATION)
            return values.astype(np.float16).view(np.uint8) if kind == F16 else values.view(np.uint8)
        size = BLOCK[kind][1]
        blocks = (32 << 20) // size
        data = np.frombuffer(self.random.bytes(blocks * size), np.uint8).reshape(blocks, size).copy()
        # The deviation of a block's integers times its scale is that of the weights.
        if kind in (Q4_0, Q5_0, Q8_0):
            data[:, 0:2] = self.scales(blocks, DEVIATION / {Q4_0: 4.6, Q5_0: 9.2, Q8_0: 73.9}[kind])
        elif kind in (Q4_K, Q5_K):
            scale = DEVIATION / {Q4_K: 258, Q5_K: 516}[kind] * self.random.uniform(0.75, 1.25, blocks)
            for at, factor in ((0, 1.0), (2, {Q4_K: 7.5, Q5_K: 15.5}[kind])):  # of the integers, and of the least values
                data[:, at:at + 2] = (scale * factor).astype(np.float16).view(np.uint8).reshape(blocks, 2)
        elif kind == Q6_K:
            data[:, 208:210] = self.scales(blocks, DEVIATION / (18.5 * 73.9))
        return data.reshape(-1)

    def write(self, file, kind, count):
        if kind not in self.pools:
            self.pools[kind] = self.pool(kind)
        pool, size = self.pools[kind], BLOCK[kind][1]
        left = count
        while left:
            begin = int(self.random.integers(0, len(pool) // size // 2)) * size
            part = min(left, len(pool) - begin)
            file.write(memoryview(pool[begin:begin + part]))
            left -= part


def write_file(path, keys, tensors, mix, layers):
    infos, table, at = [], b"", 0
    for name, dims, kind in tensors:
        chosen = type_of(mix, kind, dims, name, layers)
        weights, size = BLOCK[chosen]
        count = int(np.prod(dims, dtype=np.int64)) // weights * size
        table += packed_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, chosen, at)
        infos.append((kind, chosen, count, at))
        at += (count + 31) // 32 * 32
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys)) + b"".join(keys) + table
    head += bytes(-len(head) % 32)
    source = Weights()
    with open(path, "wb") as file:
        file.write(head)
        for kind, chosen, count, at in infos:
            file.seek(len(head) + at)
            if kind in ("one", "minus one"):
                file.write(np.full(count // 4, 1 if kind == "one" else -1, np.float32).tobytes())
            else:
                source.write(file, chosen, count)
        file.truncate(len(head) + (at + count + 31) // 32 * 32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("out")
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--types", choices=MIXES, default="q4_k_m")
    parser.add_argument("--head", action="store_true")
    options = parser.parse_args()
    shape = SHAPES[options.shape]
    if options.head and shape["build"] is not qwen35:
        parser.error(f"{options.shape} has no layer that drafts tokens")
    layers = min(options.layers or shape["layers"], shape["layers"])
    tokenizer, tokens = tokenizer_of(options.vocab)
    tensors = Layers()
    tied = shape.get("tied", False)
    tensors.add("token_embd.weight", shape["width"], tokens, kind="output" if tied else "plain")
    settings = shape["build"](shape | {"with_head": options.head}, tensors, layers)
    tensors.add("output_norm.weight", shape["width"], kind="one")
    if not tied:
        tensors.add("output.weight", shape["width"], tokens, kind="output")
    arch = shape["arch"]
    settings |= {"block_count": layers + options.head, "context_length": 131072, "embedding_length": shape["width"],
                 "rope.freq_base": shape["base"], "attention.layer_norm_rms_epsilon": 1e-6}
    keys = [key("general.architecture", arch), key("general.name", f"random weights, {options.shape}"),
            key("general.file_type", MIXES[options.types][2]), key("general.quantization_version", 2)]
    keys += [key(f"{arch}.{name}", value) for name, value in settings.items()] + tokenizer
    write_file(options.out, keys, tensors.tensors, options.types, layers)
    total = sum(int(np.prod(dims, dtype=np.int64)) for _, dims, _ in tensors.tensors)
    print(f"{options.out}: {total / 1e9:.2f} G weights in {layers} layers")


main()
