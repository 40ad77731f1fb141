"""A GGUF file taken apart, so that a test can change a part of a good one and write it again."""
import struct

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9


class Tensor:
    def __init__(self, name, shape, kind, data):
        self.name, self.shape, self.kind, self.data = name, list(shape), kind, data


class GgufFile:
    """`values` are {key: (type, bytes)}, where the bytes are those of the file; `tensors` are in its order."""

    def __init__(self, data):
        self._data, self._at = data, 8
        tensors, values = self._take("<QQ")
        self.values = {}
        for _ in range(values):
            key = self._text()
            kind, = self._take("<I")
            begin = self._at
            self._skip(kind)
            self.values[key] = (kind, data[begin:self._at])
        entries = []
        for _ in range(tensors):
            name = self._text()
            count, = self._take("<I")
            entries.append((name, self._take(f"<{count}Q"), *self._take("<IQ")))
        base = (self._at + 31) // 32 * 32
        ends = sorted([entry[3] for entry in entries] + [len(data) - base])
        self.tensors = []
        for name, shape, kind, offset in entries:
            end = ends[ends.index(offset) + 1]
            self.tensors.append(Tensor(name, shape, kind, data[base + offset:base + end]))

    def _take(self, form):
        found = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return found

    def _text(self):
        count, = self._take("<Q")
        self._at += count
        return self._data[self._at - count:self._at].decode()

    def _skip(self, kind):
        if kind == _STRING:
            self._text()
        elif kind == _ARRAY:
            element, count = self._take("<IQ")
            for _ in range(count if element == _STRING else 0):
                self._text()
            self._at += 0 if element == _STRING else count * _SIZES[element]
        else:
            self._at += _SIZES[kind]

    def __getitem__(self, name):
        return next(tensor for tensor in self.tensors if tensor.name == name)

    def set_text(self, key, text):
        self.values[key] = (_STRING, struct.pack("<Q", len(text.encode())) + text.encode())

    def set_u32(self, key, number):
        self.values[key] = (4, struct.pack("<I", number))

    def set_u16(self, key, number):
        self.values[key] = (2, struct.pack("<H", number))

    def bytes(self):
        text = lambda string: struct.pack("<Q", len(string.encode())) + string.encode()
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.values))
        for key, (kind, value) in self.values.items():
            head += text(key) + struct.pack("<I", kind) + value
        places, body = b"", b""
        for tensor in self.tensors:
            places += text(tensor.name) + struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
            places += struct.pack("<IQ", tensor.kind, len(body))
            body += tensor.data + bytes(-len(tensor.data) % 32)
        head += places
        return head + bytes(-len(head) % 32) + body
