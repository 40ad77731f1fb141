"""A model for lm-evaluation-harness, which looks for models of others nowhere, so this module starts it:

    python -m greta.lm_eval run --model greta --model_args path=file.gguf,context=4096 --tasks ...

In a program, `import greta.lm_eval` makes the model "greta" known. Arguments are those of greta.Model.
"""
from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ._model import Model

if TYPE_CHECKING:
    Base = object
else:
    from lm_eval.api.model import LM as Base
    from lm_eval.api.registry import register_model


class _GretaLM(Base):
    """Log-likelihoods and answers of a GGUF model."""

    def __init__(self, path: str = "", *, pretrained: str = "", device: str = "auto", max_gen_toks: int = 256,
                 batch_size: Any = None, max_batch_size: Any = None, **sizes: Any) -> None:
        super().__init__()
        self.model = Model(path or pretrained, device or "auto", **sizes)
        self.max_gen_toks = max_gen_toks
        with self.model.session(context=self.model._sizes["context"]) as session:
            self._context = session.context

    @classmethod
    def create_from_arg_string(cls, arg_string: str, additional_config: dict[str, Any] | None = None) -> _GretaLM:
        """From "path=file.gguf,context=4096": numbers and words."""
        given = dict(part.split("=", 1) for part in arg_string.split(",") if part)
        return cls.create_from_arg_obj(given, additional_config)

    @classmethod
    def create_from_arg_obj(cls, arg_dict: dict[str, Any], additional_config: dict[str, Any] | None = None) -> _GretaLM:
        """From a dict. The harness adds a device, by default PyTorch's cuda:0, which counts only where none is given and
        it is one of the library."""
        more = {name: value for name, value in (additional_config or {}).items() if value is not None}
        if str(more.get("device")).startswith(("cuda", "mps", "xpu", "npu", "hpu")):
            del more["device"]
        given = {name: _value(value) if isinstance(value, str) else value for name, value in arg_dict.items()}
        return cls(**(more | given))

    @property
    def tokenizer_name(self) -> str:
        return self.model.path

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return self.model.tokenizer.apply_chat_template(chat_history, add_generation_prompt=add_generation_prompt)

    def _prefix(self) -> list[int]:
        """What stands before the first token of a text."""
        tokenizer = self.model.tokenizer
        found = tokenizer.bos if tokenizer.bos is not None else tokenizer.eos
        return [] if found is None else [found]

    def _pair(self, context: str, continuation: str) -> tuple[list[int], int]:
        """The tokens of both texts, and how many of them the continuation has. Blanks between belong to it."""
        blanks = len(context) - len(context.rstrip())
        if blanks and context.strip():
            context, continuation = context[:-blanks], context[-blanks:] + continuation
        encode = self.model.tokenizer.encode
        whole, before = encode(context + continuation), encode(context)
        if not context or len(before) >= len(whole):
            before = self._prefix()
            whole = before + encode(continuation, bos=False)
        return whole, len(whole) - len(before)

    def _likelihoods(self, pairs: Iterable[tuple[list[int], int]]) -> list[tuple[float, bool]]:
        """The log-probability of the last tokens of each text, and whether each of them was the likeliest."""
        cut = [(tokens[-self._context:], min(count, self._context - 1)) for tokens, count in pairs]
        found = []
        for (_, count), scored in zip(cut, self.model.score_all([tokens for tokens, _ in cut], top_logprobs=1)):
            last = scored[len(scored) - count:]
            found.append((sum(each.logprob for each in last), all(each.top[0][0] == each.token for each in last)))
        return found

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return self._likelihoods(self._pair(*request.args) for request in requests)

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """Of a whole text, in pieces as long as the context; each begins with the last token of the one before."""
        found = []
        for request in requests:
            tokens = self._prefix() + self.model.tokenizer.encode(request.args[0], bos=False)
            step = self._context - 1
            windows = [tokens[at:at + step + 1] for at in range(0, len(tokens) - 1, step)]
            found.append(sum(value for value, _ in self._likelihoods((each, len(each) - 1) for each in windows)))
        return found

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        answers = []
        for request in requests:
            context, options = request.args
            stop = options.get("until") or []
            stop = [stop] if isinstance(stop, str) else list(stop)
            most = int(options.get("max_gen_toks", self.max_gen_toks))
            more: dict[str, Any] = {}
            if options.get("do_sample") and options.get("temperature"):
                more = {name: options[name] for name in ("temperature", "top_p", "top_k") if options.get(name)}
            tokens = self.model.tokenizer.encode(context, special=True)[-max(self._context - most, 1):]
            answers.append(self.model.stream(tokens, max_tokens=most, stop=[each for each in stop if each], **more))
        return [answer.result().text for answer in answers]


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.lstrip("-").isdigit() else text


if TYPE_CHECKING:
    GretaLM = _GretaLM
else:
    GretaLM = register_model("greta")(_GretaLM)

if __name__ == "__main__":
    importlib.import_module("lm_eval.__main__").cli_evaluate()
