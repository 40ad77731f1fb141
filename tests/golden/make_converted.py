#!/usr/bin/env python3
"""make_converted.py [--converter FOLDER] [NAME ...]: small random models, converted by llama.cpp's own converter.

For each case: a model of transformers with random weights is saved, llama.cpp's converter makes a GGUF file of it, and
the tokens and logits of make_architectures.py are added. FOLDER, or LLAMA_CONVERTER, is a checkout of llama.cpp:
it holds the package `conversion`, and gguf-py, which is used where it is there. See README.md.
"""
import argparse
import json
import logging
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--converter", default=os.environ.get("LLAMA_CONVERTER"), metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if not options.converter or not os.path.isdir(os.path.join(options.converter, "conversion")):
        parser.error("give the folder of llama.cpp, which holds conversion/, by --converter or LLAMA_CONVERTER")
    return options


OPTIONS = arguments()
# Before gguf is imported: the converter may need a newer one than the package index has.
sys.path[1:1] = [OPTIONS.converter, os.path.join(OPTIONS.converter, "gguf-py")]

import conversion
import gguf
import numpy as np
import safetensors.torch
import tokenizers
import torch
import transformers
from sentencepiece import sentencepiece_model_pb2

import make_architectures
from architecture_cases.case import VOCAB
from architecture_cases.converted import CONVERTED

# Architectures whose published models have the tokenizer of SentencePiece or of llama.cpp's "llama" kind.
SENTENCEPIECE = ("llama", "gemma", "ernie4_5", "ernie4_5-moe", "granite_swa", "mistral3", "gemma2", "gemma3", "phi3", "granite",
                 "granitemoe", "smollm3", "qwen2", "qwen3", "jamba",
                 "nemotron")


def save_sentencepiece(folder):
    model = sentencepiece_model_pb2.ModelProto()
    kinds = model.SentencePiece.Type
    special = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
    for piece, kind in special + [(f"\u2581{i}", kinds.NORMAL) for i in range(3, VOCAB)]:
        model.pieces.add(piece=piece, score=-float(len(model.pieces)), type=kind)
    model.trainer_spec.vocab_size = VOCAB
    (folder / "tokenizer.model").write_bytes(model.SerializeToString())


def save_bytewise(folder):
    """Control tokens, those that the converter looks for in GLM among them, printable characters and one merge."""
    special = ["<unk>", "<s>", "</s>", "[gMASK]", "<|endoftext|>", "<|user|>", "<|observation|>"]
    letters = [chr(ord("!") + i) for i in range(VOCAB - len(special) - 1)]
    vocabulary = {token: i for i, token in enumerate(special + letters + ["11"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[("1", "1")]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}))


def save_byte_fallback(folder):
    """Merges of texts whose spaces are written as \u2581, as Gemma 4 has."""
    special = ["<unk>", "<s>", "</s>"]
    letters = [chr(ord("!") + i) for i in range(VOCAB - len(special) - 1)]
    vocabulary = {token: i for i, token in enumerate(special + letters + ["11"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(
        vocab=vocabulary, merges=[("1", "1")], byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = tokenizers.normalizers.Replace(" ", "\u2581")
    tokenizer.decoder = tokenizers.decoders.Sequence([
        tokenizers.decoders.Replace("\u2581", " "), tokenizers.decoders.ByteFallback(), tokenizers.decoders.Fuse()])
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}))


def pack_experts(folder):
    """Writes the experts as published: MXFP4, of two neighbours the first in the low half of a byte."""
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    for name in [name for name in tensors if name.endswith(("experts.down_proj", "experts.gate_up_proj"))]:
        rows = tensors.pop(name).transpose(1, 2).contiguous().numpy()
        blocks = gguf.quants.quantize(rows, gguf.GGMLQuantizationType.MXFP4).reshape(*rows.shape[:2], -1, 17)
        codes = np.concatenate([blocks[..., 1:] & 15, blocks[..., 1:] >> 4], axis=-1)  # [.., blocks, 32]
        packed = codes[..., 0::2] | codes[..., 1::2] << 4
        tensors[name + "_blocks"] = torch.from_numpy(packed)
        tensors[name + "_scales"] = torch.from_numpy(blocks[..., 0].copy())
    safetensors.torch.save_file(tensors, path, {"format": "pt"})


def turn_experts(folder):
    """Turns the experts' matrices round, as Qwen 3 VL is published."""
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    for name in [name for name in tensors if name.endswith(("experts.down_proj", "experts.gate_up_proj"))]:
        tensors[name] = tensors[name].transpose(1, 2).contiguous()
    safetensors.torch.save_file(tensors, path, {"format": "pt"})


def undo_latent_split(writer, config):
    """Gives a file of deepseek2 the form that converters wrote before April 2025 (llama.cpp's change 12801).

    The current one splits kv_b_proj into keys and values of each head, transposes the keys, and describes one head
    of the latent width. The older ones left the tensor whole and described the heads after it, as many as queries.
    """
    keys, tensors = writer.kv_data[0], writer.tensors[0]
    for name in [name for name in tensors if name.endswith(".attn_k_b.weight")]:
        by_rank = tensors.pop(name).tensor  # [heads, rank, nope]
        values = tensors.pop(name.replace("_k_b", "_v_b")).tensor  # [heads, value, rank]
        both = np.concatenate([by_rank.swapaxes(1, 2), values], axis=1)
        writer.add_tensor(name.replace("_k_b", "_kv_b"), np.ascontiguousarray(both.reshape(-1, both.shape[-1])))
    prefix = "deepseek2.attention."
    for name in ("key_length", "value_length"):
        keys[prefix + name] = keys.pop(f"{prefix}{name}_mla")
    keys[prefix + "head_count_kv"].value = config.num_key_value_heads


def convert(case, model, folder, tokens, logits, path=None, drafts=None):
    """Saves the model in folder, converts it, and returns the size of the GGUF file.

    drafts: the tensors of a layer that drafts tokens by their published names, and arrays for the file by their keys.
    """
    model.save_pretrained(folder)
    if drafts:
        weights = safetensors.torch.load_file(folder / "model.safetensors")
        safetensors.torch.save_file({**weights, **drafts[0]}, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(
        {key: value for key, value in {**config, **case.published}.items() if case.published.get(key, 0) is not None}))
    if case.mxfp4:
        pack_experts(folder)
    if case.arch == "qwen3vlmoe":
        turn_experts(folder)
    if case.arch == "gemma4":
        save_byte_fallback(folder)
    else:
        save_sentencepiece(folder) if case.arch in SENTENCEPIECE else save_bytewise(folder)
    path = path or pathlib.Path(make_architectures.FOLDER) / (case.name + ".gguf")
    hparams = conversion.ModelBase.load_hparams(folder, False)
    kind = conversion.get_model_class(conversion.get_model_architecture(hparams, conversion.ModelType.TEXT))
    if hasattr(kind, "no_mtp"):
        kind.no_mtp = not drafts  # the classes of transformers leave out the layers that draft tokens
    converter = kind(folder, gguf.LlamaFileType.ALL_F32, path, eager=True,
                     model_name=f"random weights, {case.name}", **case.options)
    for key, value in case.published.items():  # the newest transformers takes some of them for others
        if value is not None:
            getattr(converter, "hparams", {}).setdefault(key, value)
    # The converter knows a way of splitting text by the tokens of a long text, which only whole vocabularies give.
    converter = getattr(converter, "impl", converter)  # Mistral's classes choose another one
    converter.get_vocab_base_pre = lambda tokenizer: "gpt-2"
    # The published tokenizer of the first has its merges in Python code, that of the second has tokens of its own.
    if case.model in ("HunYuanMoEV1", "SolarOpen"):
        converter.set_vocab = converter._set_vocab_gpt2
    converter.prepare_tensors()
    converter.prepare_metadata(vocab_only=False)
    writer = converter.gguf_writer
    assert writer.arch == case.arch, f"{case.name}: the converter made {writer.arch} of it"
    if case.old_latent:
        undo_latent_split(writer, model.config)
    for key in [key for key in writer.kv_data[0] if key.endswith("_token_id")]:
        if writer.kv_data[0][key].value >= VOCAB:  # the converter writes Gemma's ids whatever the vocabulary
            del writer.kv_data[0][key]
    for key, value in case.keys.items():
        (writer.add_float32 if isinstance(value, float) else writer.add_uint32)(f"{case.arch}.{key}", value)
    writer.add_license("MIT")
    writer.add_array("golden.tokens", tokens)
    writer.add_uint32("golden.context", case.context)
    writer.add_array("golden.logits", logits.flatten().tolist())
    for key, values in (drafts[1] if drafts else {}).items():
        writer.add_array(key, values)
    writer.write_header_to_file(path=path)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.stat().st_size


def make(case):
    model, tokens, logits = make_architectures.reference(case)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        return convert(case, model, pathlib.Path(folder), tokens, logits)


def main():
    transformers.utils.logging.disable_progress_bar()
    logging.disable(logging.WARNING)  # of the converter: a key that a class gives twice, tensors one by one
    make_architectures.make_all(CONVERTED, OPTIONS.names, make)


if __name__ == "__main__":
    main()
