"""Writes seeds into corpus/NAME, for the fuzzers whose inputs are bytes that nobody types.

    make_seeds.py

sampler    each step of sampling alone, all of them, and odd logits
api        each call alone, after one that opens a session
compute    long random sequences of calls, since only such reach graphs
pages      each name with each kind of file
gguf       each type of metadata, tensors, and headers that are none
session    a good state, and one for each field that is changed
tokenizer  one text for each rule that splits texts

Seeds that are texts (template, grammar, chat, the other vocabularies of tokenizer) are written by hand. The seeds of
model are the models in tests/golden/architectures, which tests/golden makes. Those of packed come from cmake/pack.
"""
import pathlib
import random
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"
FOLDER = CORPUS / "sampler"
CALLS = ("open_session fork_session close_session eval batch generate batch_generate set_sampling set_texts sample "
         "save_and_restore chat texts look open_runtime serve profile").split()  # in the order of kCalls


def setting(share):
    """A number at this share of its range, from 0 to 1."""
    return bytes([9 + round(share * 246)])


RULES = ("llama-bpe gpt-2 qwen2 unknown default starcoder jais-2 minicpm5 laguna qwen35 tekken ufakzeka seed-coder exaone-moe "
         "gpt-4o tiny-aya kimi-k2 youtu afmoe spark2-5 deepseek-v3 falcon deepseek-llm deepseek-coder bloom viking superbpe "
         "chameleon gemma4 sarvam-moe jina-v2-code").split()  # in the order of kRules


OFF = {"temperature": 0, "dynamic_range": 0, "dynamic_exponent": 1 / 3, "top_k": b"\0", "top_p": 1, "min_p": 0, "typical_p": 1,
       "top_n_sigma": 0, "xtc_probability": 0, "xtc_threshold": 0.1, "repeat": 0.9 / 1.9, "frequency": 0.5, "presence": 0.5,
       "penalty_last_n": b"\0", "mirostat": b"\1", "mirostat_eta": 0.1, "seed": b"\7", "dry": 0, "dry_base": 0.4,
       "dry_allowed": b"\2", "dry_last_n": b"\0"}
NINE_STEPS = bytes([9, *range(9)])
LOGITS = [((i * 37) % 41 - 20) / 4 for i in range(60)]


def seed(name, logits=LOGITS, order=NINE_STEPS, bias=b"\0", masked=0, **settings):
    out = b"".join(value if isinstance(value, bytes) else setting(value) for value in {**OFF, **settings}.values())
    out += order + bias + bytes([masked]) + b"".join(struct.pack("<f", logit)[2:] for logit in logits)
    (FOLDER / name).write_bytes(out)


def call_seeds():
    """A session is opened with the defaults. Each call then takes small numbers, which are those it can use."""
    folder = CORPUS / "api"
    folder.mkdir(parents=True, exist_ok=True)
    opened, small = bytes(4), bytes([0, 5, 5, 5, 0, 0, 5, 0, 5, 1, 5, 0])
    for number, name in enumerate(CALLS):
        (folder / name).write_bytes(opened + 2 * (bytes([number]) + small))


def compute_seeds():
    """Half of the bytes are small, which makes sensible choices likely."""
    folder = CORPUS / "compute"
    folder.mkdir(parents=True, exist_ok=True)
    numbers = random.Random(43)
    for number in range(12):
        choices = [numbers.randrange(256 if numbers.random() < 0.5 else 12) for _ in range(3000)]
        (folder / f"calls-{number}").write_bytes(bytes(choices))


def page_seeds():
    """Flags, then for each file: name and which page's it is, kind and which page's bytes it has, and what these take."""
    folder = CORPUS / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    names = {"page": [0, 0], "later": [0, 1], "own_rest": [2, 0], "rest": [3, 0], "other": [4, 1], "any": [5, 1, 3, 0, 97, 47, 98]}
    kinds = {"good": [0, 0], "wrong_page": [0, 1], "log": [1, 0, 0, 255, 255, 255, 128], "head": [1, 0, 0, 88, 0, 0, 1],
             "bytes": [2, 0, 4, 0, 1, 2, 3, 4], "cut": [3, 0, 0, 1, 0], "folder": [4, 0], "pipe": [5, 0], "link": [6, 0, 0],
             "loop": [6, 0, 1], "nowhere": [6, 0, 2]}
    for name, of_name in names.items():
        for number, (kind, of_kind) in enumerate(kinds.items()):
            (folder / f"{name}_{kind}").write_bytes(bytes([8 * (name == "page") + number % 4, *of_name, *of_kind]))
    (folder / "empty").write_bytes(b"\0")
    for kind in ("log", "head", "bytes", "cut"):
        (folder / f"forged_{kind}").write_bytes(bytes([12, 0, 0, *kinds[kind], 0, 1, 0, 1]))
    # changes the log of a page so that its values are infinite
    (folder / "forged_numbers").write_bytes(bytes([12, 0x7e, 0xda, 0xda, 0xda, 0x75, 0x5b, 0x63, 0xda, 0xda, 0x5b, 0xda]) + b"=" * 31 +
                                            bytes.fromhex("daffdadaffffff7f030801"))
    for limit in range(4):
        (folder / f"both_{limit}").write_bytes(bytes([8 + limit, 0, 0, 0, 0, 0, 1, 0, 1, *names["rest"], 0, 0]))


def text(string):
    return struct.pack("<Q", len(string)) + string.encode()


def header(pairs, tensors=b"", tensor_count=0, version=3):
    """`pairs`: key, number of its type, bytes of its value."""
    out = b"GGUF" + struct.pack("<IQQ", version, tensor_count, len(pairs))
    return out + b"".join(text(key) + struct.pack("<I", kind) + value for key, kind, value in pairs) + tensors


def tensor(name, dims, kind, offset):
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def padded(data, alignment):
    return data + bytes(-len(data) % alignment)


def file_seeds():
    folder = CORPUS / "gguf"
    one_of_each = [
        ("u8", 0, b"\5"), ("i8", 1, b"\xfd"), ("u16", 2, b"\1\2"), ("i16", 3, b"\1\xff"), ("u32", 4, struct.pack("<I", 1)),
        ("i32", 5, b"\xff" * 4), ("f32", 6, struct.pack("<f", 1.5)), ("bool", 7, b"\1"), ("str", 8, text("text")),
        ("u64", 10, b"\1" * 8), ("i64", 11, b"\xff" * 8), ("f64", 12, struct.pack("<d", 2.5)),
        ("strs", 9, struct.pack("<IQ", 8, 2) + text("a") + text("")), ("fs", 9, struct.pack("<IQff", 6, 2, 1, 2)),
        ("bs", 9, struct.pack("<IQ", 7, 4) + b"\0\1\1\0")]
    split = [("split.no", 2, b"\0\0"), ("split.count", 2, b"\1\0"), ("split.tensors.count", 5, bytes(4))]
    small = header([], tensor("a", [8], 0, 0) + tensor("b", [256, 1, 1, 1], 12, 32), 2)
    large = header([("general.alignment", 4, struct.pack("<I", 64))], tensor("a", [8], 0, 0) + tensor("b", [32, 2], 8, 64), 2)
    lora = [("general.type", 8, text("adapter")), ("general.architecture", 8, text("llama")),
            ("adapter.type", 8, text("lora")), ("adapter.lora.alpha", 6, struct.pack("<f", 4))]
    pair = tensor("w.lora_a", [8, 2], 0, 0) + tensor("w.lora_b", [2, 4], 0, 64)
    experts = tensor("w.lora_a", [8, 2, 2], 0, 0) + tensor("w.lora_b", [2, 4, 2], 0, 128)
    control = header([("general.architecture", 8, text("controlvector"))], tensor("direction.3", [8], 0, 0), 1)
    for name, data in {
        "lora": padded(header(lora, pair, 2), 32) + b"\1" * 96,
        "lora-half": padded(header(lora, pair[:len(pair) // 2], 1), 32) + b"\1" * 64,
        "lora-experts": padded(header(lora, experts, 2), 32) + b"\1" * 192, "control-vector": padded(control, 32) + b"\1" * 32,
        "empty": b"", "v1": header([], version=1)[:16], "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "huge-counts": b"GGUF" + struct.pack("<I", 3) + b"\xff" * 16 + bytes(64), "types": header(one_of_each),
        "types-v2": header(one_of_each, version=2), "split": header(split),
        "nested": header([("n", 9, struct.pack("<IQIQ", 9, 1, 4, 0))]),
        "tensors-32": padded(small, 32) + b"\1" * 176, "tensors-64": padded(padded(large, 64) + b"\1" * 32, 64) + b"\2" * 68,
    }.items():
        (folder / name).write_bytes(data)


def session_seeds():
    def change(place, value, kept=0):
        return struct.pack("<H", kept) + struct.pack("<I", place)[:3] + bytes([value])

    folder = CORPUS / "session"
    for name, data in {
        "good": b"\0", "summed": b"\1", "one_byte": b"\0\1\0", "header": b"\0\x50\0", "magic": b"\2GRETAKV\n",
        "damaged_cache": b"\0" + change(512, 1), "other_cache": b"\1" + change(512, 1), "version": b"\1" + change(8, 3),
        "total": b"\1" + change(16, 1), "other_model": b"\1" + change(24, 1), "fewer_tokens": b"\1" + change(32, 64, kept=512),
        "many_tokens": b"\1" + change(34, 128), "other_type": b"\1" + change(56, 1),
        "token_small": b"\1" + change(80, 255), "token_negative": b"\1" + change(83, 128),
    }.items():
        (folder / name).write_bytes(data)


def rule_seeds():
    """The text meets a sound vocabulary and each rule, by its number in kRules. Gemma 4 has a kind of its own."""
    sentence = ("The thing isn't: iPhone's HTTP 1234567 ½²\n\n  x=(a_b)/"
                "/\r\n 你好 한글 ABC漢字Ab é́ 'ſ <sentinel:12> IMGIMGABZ 😀  \t\u3000 ")
    for number, rule in enumerate(RULES):
        (CORPUS / "tokenizer" / f"rule-{rule}").write_bytes(
            bytes([4 if rule == "gemma4" else 0, number, 0]) + sentence.encode())


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    call_seeds()
    compute_seeds()
    page_seeds()
    file_seeds()
    session_seeds()
    rule_seeds()
    warm = {"temperature": 0.5}
    seed("greedy")
    seed("all", top_k=b"\x28", top_p=0.9, min_p=0.05, typical_p=0.9, top_n_sigma=0.5, xtc_probability=0.5, repeat=0.6,
         penalty_last_n=b"\x40", dry=0.4, **warm)
    for name, settings in {
        "top_k": {"top_k": b"\5"}, "top_p": {"top_p": 0.5}, "min_p": {"min_p": 0.3}, "typical_p": {"typical_p": 0.5},
        "sigma": {"top_n_sigma": 0.25}, "xtc": {"xtc_probability": 1}, "dry": {"dry": 0.8}, "dynamic": {"dynamic_range": 0.5},
        "penalties": {"repeat": 0.9, "frequency": 0.7, "presence": 0.3, "penalty_last_n": b"\x40"},
    }.items():
        seed(name, **{**warm, **settings})
    seed("mirostat", mirostat=b"\0" + setting(0.5), **warm)
    seed("bias", bias=bytes([2, 3]) + setting(1) + bytes([4]) + setting(0), **warm)
    seed("masked", masked=1, **warm)
    seed("no_steps", order=b"\0", **warm)
    seed("twice", order=bytes([6, 3, 3, 5, 5, 8, 8]), top_k=b"\x0a", top_p=0.8, **warm)
    odd = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 3e38, -3e38, 1e-40]
    seed("odd_logits", logits=odd * 3, **warm)
    seed("no_logits", logits=[float("nan")] * 5, **warm)
    seed("any_float", top_p=b"\0" + struct.pack(">f", float("nan")))


main()
