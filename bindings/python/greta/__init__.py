"""Runs GGUF language models on AMD GPUs, on any Vulkan GPU, or on the CPU.

    import greta

    with greta.Model("file.gguf") as model:
        print(model.generate("Once upon a time", max_tokens=50))
        for piece in model.stream("Once upon a time", max_tokens=50):
            print(piece, end="", flush=True)
        for event in model.chat(tools=[...]).send("What is the weather?"):
            print(event)

docs/python.md explains it. Every error is a GretaError with the library's words. The log of the library goes to
logging.getLogger("greta").
"""
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._errors import (ArgumentError, BusyError, CancelledError, ClosedError, DeviceError, FileError, FullError,
                      GretaError, InUseError, OutOfMemoryError, UnsupportedError)
from ._library import version

if TYPE_CHECKING:
    from ._answers import Call, Completion, Reasoning, Text, TokenLogprob, ToolResult
    from ._chat import Answer, Chat
    from ._dlpack import Tensor
    from ._model import Model, Tokenizer
    from ._options import Options
    from ._records import DeviceInfo, FileInfo, Finding, MemoryPlan, ModelInfo, ServiceInfo, TensorInfo
    from ._request import Request
    from ._runtime import Runtime, devices, doctor, info, plan
    from ._service import Service
    from ._session import Session
    from ._stream import SessionStream

__version__ = version()
__all__ = [
    "Answer", "ArgumentError", "BusyError", "Call", "CancelledError", "Chat", "ClosedError", "Completion",
    "DeviceError", "DeviceInfo", "FileError", "FileInfo", "Finding", "FullError", "GretaError", "InUseError",
    "MemoryPlan", "Model", "ModelInfo", "Options", "OutOfMemoryError", "Reasoning", "Request", "Runtime", "Service",
    "ServiceInfo", "Session", "SessionStream", "Tensor", "TensorInfo", "Text", "TokenLogprob", "Tokenizer", "ToolResult",
    "UnsupportedError", "devices", "doctor", "info", "plan", "version",
]

# Where the others are. Their modules are imported when one is first asked for, which takes as long as all of the above.
_PLACES = {
    "_answers": "Call Completion Reasoning Text TokenLogprob ToolResult", "_chat": "Answer Chat", "_dlpack": "Tensor",
    "_model": "Model Tokenizer", "_options": "Options", "_request": "Request", "_service": "Service",
    "_records": "DeviceInfo FileInfo Finding MemoryPlan ModelInfo ServiceInfo TensorInfo",
    "_runtime": "Runtime devices doctor info plan", "_session": "Session", "_stream": "SessionStream",
}


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names.split():
            found = globals()[name] = getattr(import_module(f".{module}", __name__), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
