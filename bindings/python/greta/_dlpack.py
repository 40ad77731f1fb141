"""Arrays for other libraries by DLPack 1, without numpy."""
from __future__ import annotations

import ctypes
import itertools
from typing import Any

_CPU, _FLOAT = 1, 2  # kDLCPU, kDLFloat
_READ_ONLY = 1
_VERSION = (1, 0)


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):  # DLManagedTensor
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):  # DLManagedTensorVersioned
    _fields_ = [("version", _Version), ("context", ctypes.c_void_p), ("deleter", _Deleter),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


# What was handed out and not given back: the number in `context`, with the struct, its shape, and the memory's owner.
_given: dict[int, tuple[Any, ...]] = {}
_numbers = itertools.count(1)


def _give_back(context: int | None) -> None:
    _given.pop(context or 0, None)


_delete_managed = _Deleter(lambda address: _give_back(_Managed.from_address(address).context))
_delete_versioned = _Deleter(lambda address: _give_back(_Versioned.from_address(address).context))

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]


def _drop(capsule: int) -> None:
    """A capsule that nobody has taken; who takes one renames it and calls the deleter."""
    kinds: tuple[tuple[bytes, Any], ...] = ((b"dltensor_versioned", _Versioned), (b"dltensor", _Managed))
    for name, kind in kinds:
        if _is_valid(capsule, name):
            _give_back(kind.from_address(_pointer_of(capsule, name)).context)


_drop_capsule = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_drop)


class Tensor:
    """A float32 array of this package for libraries that read DLPack, such as `torch.from_dlpack(Tensor(logits))`.

    array  what Session.eval, embed and the like give: a numpy array, a memoryview or an array.array

    Nothing is copied. What is made of it keeps the memory. An array that is read-only can be taken by libraries that
    know DLPack 1, whose arrays can be marked so.
    """

    def __init__(self, array: Any) -> None:
        try:
            view = memoryview(array)
        except TypeError as error:
            raise TypeError(f"array must be a float32 array without gaps: {error}") from error
        if view.format != "f" or not view.c_contiguous:
            raise TypeError("array must be a float32 array without gaps")
        self._view: Any = view

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its dimensions."""
        return tuple(self._view.shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        if stream is not None or dl_device not in (None, (_CPU, 0)):
            raise BufferError("the array is in the memory of the CPU, and is given nowhere else")
        versioned = max_version is not None and max_version[0] >= 1
        view: Any = memoryview(bytearray(self._view)).cast("f", self.shape) if copy else self._view
        if view.readonly and not versioned:
            raise BufferError("the array is read-only, which DLPack before 1.0 cannot say: copy it, or use a newer "
                              "version of the library that takes it")
        made, keep = (_Versioned if versioned else _Managed)(), _buffer_of(view)
        shape = (ctypes.c_int64 * view.ndim)(*view.shape)
        strides = (ctypes.c_int64 * view.ndim)(*[each // view.itemsize for each in view.strides])
        made.tensor = _Tensor(keep[0], _CPU, 0, view.ndim, _FLOAT, 32, 1, shape, strides, 0)
        made.context = number = next(_numbers)
        if isinstance(made, _Versioned):
            made.version, made.flags = _Version(*_VERSION), _READ_ONLY if view.readonly else 0
        made.deleter = _delete_versioned if versioned else _delete_managed
        _given[number] = (made, shape, strides, keep)
        name = b"dltensor_versioned" if versioned else b"dltensor"
        return _new_capsule(ctypes.addressof(made), name, ctypes.cast(_drop_capsule, ctypes.c_void_p))

    def __repr__(self) -> str:
        return f"<greta.Tensor, float32 {list(self.shape)}{', read-only' if self._view.readonly else ''}>"


class _Buffer(ctypes.Structure):  # Py_buffer
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


def _buffer_of(view: Any) -> tuple[int, Any]:
    """The address of a view's memory, also of a read-only one, and what keeps it."""
    buffer = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), 0)
    address = buffer.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return address, view
