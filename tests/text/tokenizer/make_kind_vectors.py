#!/usr/bin/env python3
"""Writes kind_vectors.tsv: small made-up WordPiece, unigram and byte-level BPE vocabularies, random texts, and
their ids by the Python module tokenizers (pip install tokenizers).

  make_kind_vectors.py [COUNT [SEED]] > kind_vectors.tsv      COUNT texts for each vocabulary

Lines that begin a vocabulary, with texts in hexadecimal UTF-8 parted by commas, and lines that follow it:
  wpm  LOWERCASE  TOKENS              as GGUF has them: a word's first token begins with U+2581
  ugm  MERGE_SPACES  TOKENS  SCORES  CHARSMAP
  bpe  PRE  TOKENS  MERGES            without tokens for some of the bytes that the texts have
  text  IDS
"""
import json
import random
import struct
import sys

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

MARK = "\u2581"
LETTERS = ["a", "b", "c", "ab", "ba", "Ab", "CAB", "\u00e9", "\u00c9", "e\u0301", "\u00df", "\u03a3\u03c3", "\u0416",
           "\u0436", "\u4f60", "\u597d", "\u3042", "\uac00", "\U0001f642", "1", "12"]
MARKS = [" ", " ", " ", "  ", ".", ",", "!?", "-", "$", "+", "\u3002", "\u201c", "'"]
CONTROLS = ["\n", "\t", "\u00a0", "\u3000", "\x07", "\ufffd", "\u200d", "\u00ad"]
BLANKS = ["\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u1680", "\u2028", "\u2029", "\u202f"]
NUMBERS = ["12", "345", "6789", "\u00b2", "\u00bd", "\u0663", "\u2460", "\u0bf0", "\uff12"]
SPLIT_NUMBERS = ["\u043c", "\u0438", "\u0449", "\u6f32", "\u30fe"]  # their bytes are letters that are numbers
RARE = ["\x00", "\x0b", "\x0c", "\x7f", "\x80", "\U00040000", "\U0005a5a5", "\U0007ffff", "\U000fffff", "\U0010ffff",
        "a\U00040000b", "\u07ff", "\ue000"]
FULL_WIDTH = ["\uff41", "\uff42", "\ufb01", "\u00bd"]


def random_text(draw, parts):
    return "".join(draw.choice(draw.choice(parts)) for _ in range(draw.randint(0, 30)))


def hexes(texts):
    return ",".join(text.encode().hex() for text in texts)


def wpm(draw, count, lowercase):
    normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None,
                                            lowercase=lowercase)
    cut = pre_tokenizers.BertPreTokenizer()
    parts = [LETTERS] * 4 + [MARKS] * 2 + [CONTROLS, BLANKS]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    while len(tokens) < 160:
        for word, _ in cut.pre_tokenize_str(normalizer.normalize_str(random_text(draw, parts))):
            first = draw.randrange(len(word))
            token = ("##" if first else "") + word[first:first + draw.choice((1, 1, 2, 3, 5))]
            if token not in tokens:
                tokens.append(token)
    model = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]",
                                       max_input_chars_per_word=100))
    model.normalizer, model.pre_tokenizer = normalizer, cut
    written = [token if i < 4 else token[2:] if token.startswith("##") else MARK + token
               for i, token in enumerate(tokens)]
    print("wpm", int(lowercase), hexes(written), sep="\t")
    texts = [random_text(draw, parts) for _ in range(count)] + ["ab" * 50, "ab" * 50 + "a", "a" * 99 + "\u00e9."]
    for text in texts:
        print("text", text.encode().hex(), " ".join(map(str, model.encode(text).ids)), sep="\t")


def charsmap(pairs):
    """A double array over the keys of `pairs`, then the replacements: SentencePiece's format."""
    replacements, offsets = b"", {}
    for key, value in pairs.items():
        offsets[key.encode()] = len(replacements)
        replacements += value.encode() + b"\0"
    tree, bases = {}, {0}
    for key, offset in offsets.items():
        node = tree
        for byte in key:
            node = node.setdefault(byte, {})
        node[0] = offset  # byte 0: a key ends here
    units = {0: 0}

    def place(node, index):
        base = next(b for b in range(1, 1 << 20)  # a label alone tells a child, so no two nodes share a base
                    if b not in bases and all(b ^ byte not in units for byte in node))
        bases.add(base)
        units[index] |= (base ^ index) << 10 | (0x100 if 0 in node else 0)
        for byte, below in node.items():
            units[base ^ byte] = below | 1 << 31 if byte == 0 else byte
        for byte, below in node.items():
            if byte:
                place(below, base ^ byte)
    place(tree, 0)
    size = max(units) + 256 & ~255
    blob = struct.pack(f"<{size}I", *(units.get(i, 0) for i in range(size)))
    return struct.pack("<I", len(blob)) + blob + replacements


def ugm(draw, count, merge):
    replaced = {"\uff41": "a", "\uff42": "b", "\ufb01": "fi", "\u00bd": "1\u20442", "\t": " ", "\n": " ", "\u3000": " ",
                "e\u0301": "\u00e9", "\u00ad": ""}
    table = charsmap(replaced)
    parts = [LETTERS] * 5 + [MARKS, [" "], FULL_WIDTH, ["\t", "\u3000", "\n"] if merge else [" "]]
    tokens = ["<pad>", "</s>", "<unk>"]
    while len(tokens) < 120:
        text = random_text(draw, parts).replace(" ", MARK)
        if text:
            first = draw.randrange(len(text))
            token = text[first:first + draw.choice((1, 1, 2, 3, 4, 6))]
            if token not in tokens and MARK not in token[1:] and not set(token) & set("\t\n\u3000"):
                tokens.append(token)
    scores = [0.0, 0.0, 0.0] + [-draw.randint(8, 900) / 64 for _ in tokens[3:]]
    model = Tokenizer(models.Unigram(list(zip(tokens, scores)), unk_id=2, byte_fallback=False))
    model.normalizer = normalizers.Precompiled(table)
    mark = pre_tokenizers.Metaspace(MARK, prepend_scheme="always", split=True)
    model.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), mark]) if merge else mark
    print("ugm", int(merge), hexes(tokens), " ".join(map(str, scores)), table.hex(), sep="\t")
    for text in [random_text(draw, parts) for _ in range(count)]:
        if not merge:
            text = text.lstrip(" ")  # SentencePiece puts a mark before a space too, this module does not
        ids = model.encode(text).ids
        # Words are encoded apart there, so that unknown tokens of neighbours stay two: one by rule here.
        ids = [each for i, each in enumerate(ids) if each != 2 or i == 0 or ids[i - 1] != 2]
        print("text", text.encode().hex(), " ".join(map(str, ids)), sep="\t")


# The pipelines of the models' tokenizer.json.
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False)
PIPELINES = {
    "falcon": [pre_tokenizers.Punctuation("contiguous"), BYTES, pre_tokenizers.Digits(individual_digits=False),
               pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")],
    "starcoder": [pre_tokenizers.Digits(individual_digits=True), BYTES],
    "refact": [pre_tokenizers.Digits(individual_digits=True), BYTES],
}


def bpe(draw, count, pre):
    """Trained on texts without RARE, so that most of their bytes have no token."""
    known = [LETTERS] * 3 + [MARKS, [" ", " the", " ab"], NUMBERS, SPLIT_NUMBERS, ["'s", "'ll", "\n", "\n\n"]]
    model = Tokenizer(models.BPE())
    model.pre_tokenizer = pre_tokenizers.Sequence(PIPELINES[pre])
    trainer = trainers.BpeTrainer(vocab_size=260, special_tokens=["<|endoftext|>"], show_progress=False)
    model.train_from_iterator([random_text(draw, known) for _ in range(400)], trainer)
    written = json.loads(model.to_str())["model"]
    tokens = sorted(written["vocab"], key=written["vocab"].get)
    print("bpe", pre, hexes(tokens), hexes(" ".join(merge) for merge in written["merges"]), sep="\t")
    for text in [random_text(draw, known + [RARE, CONTROLS]) for _ in range(count)] + RARE:
        print("text", text.encode().hex(), " ".join(map(str, model.encode(text).ids)), sep="\t")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    wpm(draw, count, True)
    wpm(draw, count, False)
    ugm(draw, count, True)
    ugm(draw, count, False)
    for pre in PIPELINES:
        bpe(draw, count, pre)


if __name__ == "__main__":
    main()
