"""A model's tokenizer with the common calls of a tokenizer of transformers.

    from greta.transformers_like import Tokenizer

    tokenizer = Tokenizer(model)
    batch = tokenizer(["a fox", "an owl"], padding=True, return_tensors="np")

What is not there raises an error that says so.
"""
from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import Model
from . import _declarations as c
from ._arrays import _numpy
from ._library import check, lib

_CONTROL = (int(c.greta_token_kind.GRETA_TOKEN_CONTROL), int(c.greta_token_kind.GRETA_TOKEN_UNKNOWN))


class Encoding(dict[str, Any]):
    """What tokenizing gives: `input_ids` and `attention_mask`, as keys and as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error


class Tokenizer:
    """A view of the tokenizer of a model. Special tokens that are written out in a text become those tokens, as in
    transformers; padding is on the right, and the end token stands in where the model has no token for it."""

    padding_side = truncation_side = "right"

    def __init__(self, model: Model) -> None:
        self.model, self._inner = model, model.tokenizer
        self.model_max_length = model.info.context
        self.chat_template = self._inner.chat_template
        with self._inner._handle.use() as pointer:
            tokenizer = lib.greta_model_tokenizer(pointer)
            pad = lib.greta_tokenizer_fill_token(tokenizer, c.greta_fill_token.GRETA_FILL_PAD)
            self._special = {token for token in range(len(self._inner)) if _kind(tokenizer, token) in _CONTROL}
        self.bos_token_id, self.eos_token_id = self._inner.bos, self._inner.eos
        self.pad_token_id: int | None = pad if pad >= 0 else self.eos_token_id
        self._ids: dict[str, int] | None = None

    # ---- texts to ids ----

    def __call__(self, text: str | Sequence[str], *, add_special_tokens: bool = True, padding: bool | str = False,
                 truncation: bool = False, max_length: int | None = None, return_tensors: str | None = None,
                 return_attention_mask: bool = True) -> Encoding:
        """The ids of a text, or of each text of a list.

        padding         True or "longest": up to the longest text; "max_length": up to max_length
        truncation      texts are cut at max_length, or at what the model was trained for
        return_tensors  None for lists, "np" for numpy arrays, "pt" for tensors of torch
        """
        if return_tensors not in (None, "np", "pt"):
            raise NotImplementedError(f"return_tensors is {return_tensors!r}; there are None, 'np' and 'pt'")
        if padding not in (False, True, "longest", "max_length", "do_not_pad"):
            raise ValueError(f"padding is {padding!r}, but it must be a bool, 'longest', 'max_length' or 'do_not_pad'")
        limit = max_length if max_length is not None else self.model_max_length
        rows = [self._inner.encode(each, bos=add_special_tokens, special=True)
                for each in ([text] if isinstance(text, str) else text)]
        if truncation:
            rows = [row[:limit] for row in rows]
        lengths = [len(row) for row in rows]
        if padding not in (False, "do_not_pad") and rows:
            width = limit if padding == "max_length" else max(lengths)
            if self.pad_token_id is None:
                raise ValueError("the model has no token to pad with")
            rows = [row + [self.pad_token_id] * (width - len(row)) for row in rows]
        made = Encoding(input_ids=rows)
        if return_attention_mask:
            made["attention_mask"] = [[1] * length + [0] * (len(row) - length) for row, length in zip(rows, lengths)]
        if isinstance(text, str) and return_tensors is None:
            return Encoding({name: values[0] for name, values in made.items()})
        return Encoding({name: _tensor(values, return_tensors) for name, values in made.items()})

    def encode(self, text: str, *, add_special_tokens: bool = True, **more: Any) -> Any:
        """The ids of a text."""
        return self(text, add_special_tokens=add_special_tokens, **more)["input_ids"]

    def tokenize(self, text: str, *, add_special_tokens: bool = False) -> list[str]:
        """The texts of the tokens of a text."""
        return list(self.convert_ids_to_tokens(self.encode(text, add_special_tokens=add_special_tokens)))

    # ---- ids to texts ----

    def decode(self, ids: int | Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """The text of ids; special tokens are written out unless they are skipped."""
        given = [int(each) for each in (ids if isinstance(ids, Iterable) else [ids])]
        text, plain = b"", list[int]()
        for token in given:
            if token not in self._special:
                plain.append(token)
                continue
            text += self._inner.decode_bytes(plain) + (b"" if skip_special_tokens else self._inner.token_bytes(token))
            plain = []
        return (text + self._inner.decode_bytes(plain)).decode("utf-8", "replace")

    def batch_decode(self, rows: Iterable[Iterable[int]], *, skip_special_tokens: bool = False) -> list[str]:
        """The text of each row of ids."""
        return [self.decode(row, skip_special_tokens=skip_special_tokens) for row in rows]

    def convert_ids_to_tokens(self, ids: Any) -> Any:
        """The text of an id, or of each of a list; what is a part of a character is U+FFFD."""
        if not isinstance(ids, Iterable):
            return self._inner.token_bytes(ids).decode("utf-8", "replace")
        return [self.convert_ids_to_tokens(int(each)) for each in ids]

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """The id of a token's text, or of each of a list; None for a text that is no token."""
        return self.get_vocab().get(tokens) if isinstance(tokens, str) else [self.convert_tokens_to_ids(each)
                                                                             for each in tokens]

    def get_vocab(self) -> dict[str, int]:
        """The id of each token by its text; of several with the same text the first."""
        if self._ids is None:
            self._ids = {}
            for token in range(len(self)):
                self._ids.setdefault(self.convert_ids_to_tokens(token), token)
        return self._ids

    # ---- the rest ----

    def apply_chat_template(self, messages: Sequence[Mapping[str, Any]], *, tokenize: bool = True,
                            add_generation_prompt: bool = False, **more: Any) -> Any:
        """The prompt that the model's template makes of messages: its ids, or its text with tokenize=False."""
        named = {name: more.pop(name) for name in ("return_tensors", "padding", "truncation", "max_length")
                 if name in more}
        text = self._inner.apply_chat_template(messages, add_generation_prompt=add_generation_prompt, **more)
        return self.encode(text, add_special_tokens=False, **named) if tokenize else text

    @property
    def all_special_ids(self) -> list[int]:
        """The control tokens."""
        return sorted(self._special)

    @property
    def bos_token(self) -> str | None:
        """The text of the token that begins a text."""
        return self._text_of(self.bos_token_id)

    @property
    def eos_token(self) -> str | None:
        """The text of the token that ends a text."""
        return self._text_of(self.eos_token_id)

    @property
    def pad_token(self) -> str | None:
        """The text of the token that fills rows up."""
        return self._text_of(self.pad_token_id)

    def _text_of(self, token: int | None) -> str | None:
        return None if token is None else str(self.convert_ids_to_tokens(token))

    @property
    def vocab_size(self) -> int:
        """How many tokens there are."""
        return len(self)

    def __len__(self) -> int:
        return len(self._inner)

    def __repr__(self) -> str:
        return f"<greta.transformers_like.Tokenizer of {len(self)} tokens>"


def _kind(tokenizer: Any, token: int) -> int:
    size, kind = ctypes.c_size_t(), ctypes.c_uint32()
    check(lib.greta_tokenizer_token(tokenizer, token, None, 0, ctypes.byref(size), ctypes.byref(kind)))
    return kind.value


def _tensor(rows: list[list[int]], kind: str | None) -> Any:
    if kind is None:
        return rows
    if len({len(row) for row in rows}) > 1:
        raise ValueError("the texts have different lengths: give padding=True to make one array of them")
    if kind == "pt":
        import importlib
        return importlib.import_module("torch").tensor(rows)
    numpy = _numpy()
    if numpy is None:
        raise ImportError("return_tensors='np' needs numpy: install it")
    return numpy.array(rows, numpy.int64)
