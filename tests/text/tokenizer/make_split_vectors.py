#!/usr/bin/env python3
"""Writes split_vectors.tsv: random texts, and the words that the published regular expressions of the
pre-tokenizers cut them into, by the module regex (pip install regex; any version of Unicode 17).

  make_split_vectors.py [COUNT [SEED]] > split_vectors.tsv      COUNT texts for each way to cut

A line: the pre-tokenizers' names, parted by commas; the text in hexadecimal UTF-8; the bytes of each word.
The expressions stand here as the models' tokenizer.json have them; a list is applied in turn, each to the
pieces that the last left ("Isolated"). Those in bytes stand behind ByteLevel, where each byte has become a
letter of its own: they cut bytes.
"""
import random
import sys

import regex

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
END = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def llama3(digits, tail=r"[\r\n]*", end=END):
    return (CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + digits + r"| ?[^\s\p{L}\p{N}]+" + tail + end)


def cased(digits, contraction, tail=r"[\r\n/]*", upper=r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]",
          lower=r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"):
    return (rf"[^\r\n\p{{L}}\p{{N}}]?{upper}*{lower}+{contraction}|[^\r\n\p{{L}}\p{{N}}]?{upper}+{lower}*{contraction}"
            rf"|\p{{N}}{digits}| ?[^\s\p{{L}}\p{{N}}]+{tail}" + END)


DEEPSEEK_LETTERS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376"
    "\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-"
    "\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"
    "\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4"
    "\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc"
    "\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
    "\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b"
    "\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943")
HAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
HAN3 = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
             r"| ?[\p{P}\p{S}]+[\r\n]*" + END)
SPARK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
         r"| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+")
AFMOE = ("[\u4e00-\u9fff\u3040-\u309f\u30a0-\u30ff\u3400-\u4dbf\uf900-\ufaff\uff65-\uff9f\u2f00-\u2fdf]+|"
         "[\u0e00-\u0e7f]+|[\u0e80-\u0eff]+|[\u1780-\u17ff]+|[\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff]+|"
         "[\uac00-\ud7af\u1100-\u11ff]+")
YOUTU = ("[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f"
         "\ufe30-\ufe4f]+|[\u3105-\u312f]+|" + HAN3)
BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
JAIS2 = "|".join([r"|\s*[\r\n]+"] + [rf"\s{{{1 << i}}}(?!\S)" for i in range(9, 1, -1)] + [r"\s{1,2}(?!\S)|\s{1}"])
KIMI = r"(?V1)[\p{Han}]+|" + cased("{1,3}", CONTRACTION + "?", r"[\r\n]*",
                                   r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]",
                                   r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]")

RULES = {
    "gpt-2,mpt,olmo,jais,roberta-bpe": [GPT2],
    "starcoder,refact,command-r,smollm": [r"\p{N}", GPT2],
    "llama-bpe,dbrx,glm4,falcon3": [llama3("{1,3}")],
    "qwen2,stablelm2,hunyuan,grok-2": [llama3("")],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
                   r"|\s+(?!\S)|\s+"],
    "laguna": [r"[^\n]+|[\n]+", llama3("")],
    "qwen35": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + END],
    "seed-coder": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + END],
    "ufakzeka": [r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + END],
    "minicpm5": [r"\p{N}{1,3}", llama3("+")],
    "exaone-moe": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
                   r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "jais-2": [llama3("{1,3}", end=JAIS2)],
    "gpt-4o,llama4,minimax-m2": [cased("{1,3}", CONTRACTION + "?")],
    "tekken": [cased("", "")],
    "kimi-k2": [KIMI],
    "youtu": [YOUTU, cased("", CONTRACTION + "?")],
    # \b after a digit, as the library Oniguruma has it, by which the expression is read: other modules count
    # numbers that are no digits, and joiners, otherwise.
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*(?![\p{L}\p{M}\p{N}\p{Pc}]))", cased("{1,3}", CONTRACTION + "?")],
    "deepseek-llm": [r"[\r\n]", r"\s?[" + DEEPSEEK_LETTERS + "]+",
                     "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$", HAN, r"\p{N}"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN, r"\p{N}"],
    "deepseek-v3,hunyuan-dense": [r"\p{N}{1,3}", HAN3, DEEPSEEK3],
    "spark2_5": [r"\p{N}{1,3}", HAN3, SPARK, r"\p{N}"],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", AFMOE, DEEPSEEK3],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, b"[0-9\xb2\xb3\xb9\xbc-\xbe]+", b"[0-9][0-9][0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
    "bloom,poro-chat": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "chameleon": [r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}",
                  r"[\p{P}!-/:-@\[-`{-~]", GPT2],
    "gemma4": [r"[^\n]+|[\n]+"],
}

# What random texts are made of.
PARTS = [
    list("abcdefgzABCDEFGZ"), ["the", "And", "iPhone", "HTTP", "don", "x"], list("0123456789"),
    ["12", "123", "1234", "1234567", "42,000"], [" "] * 8 + ["  ", "   ", "\t", "\u00a0", "\u3000", "\x85", "\u2028"],
    ["\n", "\r\n", "\n\n", "\r", " \n", "\n "], list("!\"#$%&()*+,-./:;<=>?@[]^_`{|}~\\"), ["...", "//", "--", "!?"],
    ["'", "'s", "'S", "'t", "'re", "'VE", "'m", "'ll", "'Ll", "'d", "'l", "'\u017f", "'x"],
    list("\u00e9\u00c9\u00df\u0130\u017f\u0416\u0436\u03a3\u03c3\u01c5\u01c8\u1f88"),
    list("\u02b0\u3005\u30fc\u0e46\uff70"), list("\u4f60\u597d\u6f22\u5b57\u3400\uf900\U00020000\u2e80\u2f00\u9fa6"),
    list("\u3042\u30a2\uff66\uac00\ud7a3\u3131\u1100\u3105"), list("\u0e01\u0e81\u1780\u1000\uaa60\u05d0\u0627\u0905"),
    list("\u0301\u0308\u093e\u0903\u20dd\u0e34\U00016ff0"), list("\u0663\u0967\u2167\u3007\u00bd\u00b2\u2460"),
    list("\u2018\u2019\u201c\u2026\u3001\u3002\uff01\uff0c\u060c\u06d4\u0964\u203f\uff3f\u00ab"),
    list("\u20ac\u00a9\U0001f642\U0001f468\u00ac\uff0b"), ["\x00", "\x07", "\u200d", "\ufeff", "\u0378", "\ue000"],
    ["<sentinel:12>", "<sentinel:>", "IMGIMGABZ", "IMGIMGABCDEZ", "\u01c4\u01c5"],
]


def cut(text, expressions):
    pieces = [text]
    for expression in expressions:
        after, matches = [], regex.compile(expression)
        if isinstance(expression, bytes):
            pieces = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
        for piece in pieces:
            at = 0
            for match in matches.finditer(piece):
                if match.start() > at:
                    after.append(piece[at:match.start()])
                if match.end() > match.start():
                    after.append(match.group())
                at = match.end()
            if at < len(piece):
                after.append(piece[at:])
        pieces = after
    return [piece.encode() if isinstance(piece, str) else piece for piece in pieces]


def random_text(draw):
    favoured = draw.sample(PARTS, 6)
    return "".join(draw.choice(draw.choice(favoured if draw.random() < 0.8 else PARTS))
                   for _ in range(draw.randint(1, 24)))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    for names, expressions in RULES.items():
        texts = [random_text(draw) for _ in range(count)]
        if names in ("jais-2", "llama-bpe,dbrx,glm4,falcon3"):
            texts += [" " * n + end for n in (3, 7, 8, 513, 1030) for end in ("", "a", "1", "\na")]
        for text in texts:
            words = [str(len(word)) for word in cut(text, expressions)]
            print(names, text.encode().hex(), " ".join(words), sep="\t")


if __name__ == "__main__":
    main()
