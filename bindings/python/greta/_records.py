"""What the library describes, as frozen dataclasses. Fields have the names and units of greta.h."""
from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, TypeVar

T = TypeVar("T")


def record(kind: type[T], struct: Any, **more: Any) -> T:
    """A dataclass with the struct's fields of the same names; texts are decoded, 0 and 1 become bool where asked."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.name in more:
            values[field.name] = more[field.name]
            continue
        value = getattr(struct, field.name)
        if isinstance(value, bytes) or (value is None and field.type == "str"):
            value = (value or b"").decode("utf-8", "replace")
        elif isinstance(value, ctypes.Array):
            value = tuple(value)
        values[field.name] = bool(value) if field.type == "bool" else value
    return kind(**values)


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """A device that was looked for. `reason` says why one that is not `usable` cannot be used."""

    id: str
    name: str
    usable: bool
    reason: str
    driver: str
    arch: str
    memory_bytes: int
    memory_free_bytes: int
    unit_count: int
    unified_memory: bool
    cpu_type: bool
    pci: str


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that is known of this machine's GPUs. `advice` says what to do, or is empty."""

    subject: str
    key: str
    value: str
    advice: str


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """A tensor of a file. `shape` has its innermost dimension first, as the file does."""

    name: str
    type: str
    shape: tuple[int, ...]
    offset_bytes: int
    size_bytes: int
    part: int


@dataclasses.dataclass(frozen=True)
class FileInfo:
    """What a GGUF file contains. No weight was read for it."""

    path: str
    version: int
    size_bytes: int
    metadata: dict[str, str] = dataclasses.field(repr=False)
    tensors: tuple[TensorInfo, ...] = dataclasses.field(repr=False)

    @property
    def architecture(self) -> str:
        return self.metadata.get("general.architecture", "").strip('"')

    @property
    def name(self) -> str:
        return self.metadata.get("general.name", "").strip('"')


@dataclasses.dataclass(frozen=True)
class MemoryPlan:
    """What a model and its cache would allocate on a device, in bytes."""

    fits: bool
    device: str
    context: int
    step_tokens: int
    total_bytes: int
    free_bytes: int
    weights_bytes: int
    mapped_bytes: int
    cache_bytes: int
    arena_bytes: int
    tables_bytes: int
    host_bytes: int
    states_bytes: int
    checkpoints_bytes: int


@dataclasses.dataclass(frozen=True)
class ModelInfo:
    """A model: its sizes, the number of its parameters, and the bytes that one token reads."""

    architecture: str
    name: str
    type: str
    vocab_size: int
    context: int
    layers: int
    width: int
    heads: int
    kv_heads: int
    parameters: int
    weights_bytes: int
    token_bytes: int
    identity: int


@dataclasses.dataclass(frozen=True)
class ServiceInfo:
    """What a service does: requests that wait and run, pages of its cache, and totals since it was opened."""

    waiting: int
    running: int
    pages: int
    free_pages: int
    cached_pages: int
    steps: int
    rows: int
    cached_tokens: int
    set_back: int
    step_ns: int
    prompt_tokens: int
    generated_tokens: int
    failed: int
