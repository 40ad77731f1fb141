"""Small LoRAs and control vectors for the bundled model, as GGUF files."""
import random
import struct

from gguf_file import GgufFile, Tensor


def empty():
    return GgufFile(b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + bytes(8))


def floats(count, size, seed):
    draw = random.Random(seed)
    return struct.pack(f"<{count}f", *(draw.gauss(0, size) for _ in range(count)))


def lora(model, names, rank=4, size=0.05, alpha=8.0, seed=1):
    """A LoRA for tensors of `model`, the bytes of a GGUF file; with the size 0 it changes nothing."""
    base, file = GgufFile(model), empty()
    for key, text in (("general.type", "adapter"), ("general.architecture", "llama"), ("adapter.type", "lora")):
        file.set_text(key, text)
    file.values["adapter.lora.alpha"] = (6, struct.pack("<f", alpha))
    for name in names:
        depth, n = base[name].shape
        file.tensors.append(Tensor(name + ".lora_a", [depth, rank], 0, floats(depth * rank, 1, seed)))
        file.tensors.append(Tensor(name + ".lora_b", [rank, n], 0, floats(n * rank, size, seed + 1)))
    return file.bytes()


def control_vector(width, layers, size=1.0):
    file = empty()
    file.set_text("general.architecture", "controlvector")
    file.set_text("controlvector.model_hint", "llama")
    for layer in layers:
        file.tensors.append(Tensor(f"direction.{layer}", [width], 0, floats(width, size, layer)))
    return file.bytes()
