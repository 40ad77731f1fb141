"""Devices and files: what can be known before a model is loaded, and the runtime that opens a device."""
from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from . import _declarations as c
from ._handles import Closable, open_handle
from ._library import Callback, check, kind_of, lib, log_callback, make, path_bytes
from ._records import DeviceInfo, FileInfo, Finding, MemoryPlan, TensorInfo, record

_HIDING = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
_ARRAY_LENGTH = 200  # of the text of an array of a file's metadata
_CACHE_TYPES = {"default": 0, "f32": 1, "f16": 2, "q8_0": 3}


def _cache_folder() -> str | None:
    """Where greta-cli keeps compiled kernels, too."""
    for name, rest in (("XDG_CACHE_HOME", ""), ("HOME", "/.cache")):
        folder = os.environ.get(name, "")
        if folder.startswith("/"):
            return f"{folder}{rest}/greta"
    return None


def runtime_options(**values: Any) -> c.greta_runtime_options:
    """The options of a runtime, with what the environment of this process says of drivers."""
    rocm = [os.environ[name] for name in ("ROCM_PATH", "HIP_PATH") if os.environ.get(name)]
    hiding = [f"{name}={os.environ[name]}" for name in _HIDING if os.environ.get(name)]
    in_environment = sys.prefix != sys.base_prefix
    return make(c.greta_runtime_options, log=log_callback, rocm_folders=":".join(rocm) or None,
                virtual_environment=sys.prefix if in_environment else None, hiding=" and ".join(hiding) or None,
                **values)


class Runtime(Closable):
    """A device that is open. Models share it if they are opened with it; most programs never name one.

    device        "auto" takes the best GPU that works, else the CPU; "cpu", "vulkan0" or "hip1" exactly that one
    threads       worker threads of the CPU; 0: one for each processor
    memory_limit  the most bytes that may be allocated on the device; 0: what is free
    exact         only the plain kernels: slow, and results do not depend on how a prompt is cut into steps

    Raises DeviceError or UnsupportedError where a device that was named cannot be used.
    """

    def __init__(self, device: str = "auto", *, threads: int = 0, memory_limit: int = 0, exact: bool = False) -> None:
        self._device = device
        options = runtime_options(device=device, threads=threads, memory_limit_bytes=memory_limit, exact=bool(exact),
                                  cache_folder=_cache_folder())
        self._handle = open_handle(lambda place: int(lib.greta_runtime_open(ctypes.byref(options), place)), "runtime",
                                   lib.greta_runtime_close)

    @property
    def info(self) -> DeviceInfo:
        """The device."""
        found = make(c.greta_device_info)
        with self._handle.use() as pointer:
            check(lib.greta_runtime_describe(pointer, ctypes.byref(found)))
        return record(DeviceInfo, found)

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<greta.Runtime, closed>"
        info = self.info
        return f"<greta.Runtime on {info.id}: {info.name}>"


def devices() -> list[DeviceInfo]:
    """All devices that were looked for, also those that cannot be used, which say why."""
    found: list[DeviceInfo] = []
    callback = Callback()

    def on_device(_user: Any, device: Any) -> None:
        found.append(record(DeviceInfo, device.contents))

    on = callback.wrap(kind_of("greta_device_list", 1), on_device)
    check(callback.call(lib.greta_device_list, ctypes.byref(runtime_options()), on, None))
    return found


def doctor() -> list[Finding]:
    """What keeps GPUs of this machine from being used. Findings with an `advice` say what to do."""
    found: list[Finding] = []
    callback = Callback()

    def on_finding(_user: Any, finding: Any) -> None:
        found.append(record(Finding, finding.contents))

    on = callback.wrap(kind_of("greta_machine_examine_with", 1), on_finding)
    check(callback.call(lib.greta_machine_examine_with, ctypes.byref(runtime_options()), on, None))
    return found


class _File(Closable):
    """A GGUF file that is open."""

    def __init__(self, path: str | bytes | os.PathLike[str]) -> None:
        source = make(c.greta_source, path=path_bytes(path))
        self._handle = open_handle(lambda place: int(lib.greta_file_open(ctypes.byref(source), place)), "file",
                                   lib.greta_file_close)


def info(path: str | bytes | os.PathLike[str]) -> FileInfo:
    """What a GGUF file contains, without loading it: metadata as text, and the list of tensors.

    Any part of a split set stands for the set. Raises FileError.
    """
    file = _File(path)
    metadata: dict[str, str] = {}
    tensors: list[TensorInfo] = []
    with file._handle.use() as pointer:
        key, kind, value = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.create_string_buffer(65536)
        for index in range(lib.greta_file_metadata_count(pointer)):
            check(lib.greta_file_metadata(pointer, index, ctypes.byref(key), ctypes.byref(kind), value, len(value)))
            text = value.value.decode("utf-8", "replace")
            if (kind.value or b"").startswith(b"array") and len(text) > _ARRAY_LENGTH:
                text = text[:_ARRAY_LENGTH] + "..."
            metadata[(key.value or b"").decode("utf-8", "replace")] = text
        tensor = make(c.greta_tensor_info)
        for index in range(lib.greta_file_tensor_count(pointer)):
            check(lib.greta_file_tensor(pointer, index, ctypes.byref(tensor)))
            tensors.append(record(TensorInfo, tensor, shape=tuple(tensor.shape)[:tensor.dimensions]))
        found = FileInfo(os.fsdecode(path), lib.greta_file_version(pointer), lib.greta_file_size_bytes(pointer),
                         metadata, tuple(tensors))
    file.close()
    return found


def executor_options(context: int = 0, sequences: int = 0, cache_tokens: int = 0, cache_type: str = "default",
                     **more: Any) -> c.greta_executor_options:
    """Sizes of an executor. The type of the cache is that of keys and values."""
    if cache_type not in _CACHE_TYPES:
        raise ValueError(f"cache_type is {cache_type!r}, but it must be one of {', '.join(_CACHE_TYPES)}")
    kind = _CACHE_TYPES[cache_type]
    return make(c.greta_executor_options, context=context, sequences=sequences, cache_tokens=cache_tokens,
                key_type=kind, value_type=kind, **more)


def plan(path: str | bytes | os.PathLike[str], device: str | Runtime = "auto", *, context: int = 0,
         sequences: int = 16, cache_tokens: int = 0, cache_type: str = "default") -> MemoryPlan:
    """What Model(path, ...) with the same arguments would allocate, to the byte, before anything is loaded.

    A plan that does not fit is no error: its `fits` is False.
    """
    runtime = device if isinstance(device, Runtime) else Runtime(device)
    file = _File(path)
    options = executor_options(context, sequences, cache_tokens, cache_type)
    found = make(c.greta_memory_plan)
    with runtime._handle.use() as on, file._handle.use() as pointer:
        check(lib.greta_memory_plan_make(on, pointer, ctypes.byref(options), ctypes.byref(found)))
    file.close()
    return record(MemoryPlan, found)
