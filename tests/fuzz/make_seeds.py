"""Writes the seeds of fuzz/sampler.cpp into corpus/sampler: each step of sampling alone, all of them, and odd logits.
And those of fuzz/api.cpp into corpus/api: each call alone, after one that opens a session.

    make_seeds.py

The seeds of fuzz/model.cpp are the models in tests/golden/architectures, which tests/golden makes.
"""
import pathlib
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"
FOLDER = CORPUS / "sampler"
CALLS = ("open_session fork_session close_session eval batch generate batch_generate set_sampling set_texts sample "
         "save_and_restore chat texts look open_runtime serve profile").split()  # in the order of kCalls


def setting(share):
    """A number at this share of its range, from 0 to 1."""
    return bytes([9 + round(share * 246)])


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


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    call_seeds()
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
