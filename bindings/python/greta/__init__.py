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
from ._answers import Call, Completion, Reasoning, Text, TokenLogprob, ToolResult
from ._chat import Answer, Chat
from ._dlpack import Tensor
from ._errors import (ArgumentError, BusyError, CancelledError, ClosedError, DeviceError, FileError, FullError,
                      GretaError, InUseError, OutOfMemoryError, UnsupportedError)
from ._model import Model, Tokenizer
from ._options import Options
from ._records import DeviceInfo, FileInfo, Finding, MemoryPlan, ModelInfo, ServiceInfo, TensorInfo
from ._request import Request
from ._runtime import Runtime, devices, doctor, info, plan, version
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
