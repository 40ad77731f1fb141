"""Reads traces: Chrome's JSON, and Perfetto's messages of Protocol Buffers by the numbers of their public fields."""
import collections
import json
import struct

Slice = collections.namedtuple("Slice", "track name begin end arguments")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """The fields of a message: (number, value), with bytes for texts and messages."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            (value,) = struct.unpack_from("<d", data, at)
            at += 8
        else:
            assert kind == 2, f"wire type {kind}"
            size, at = varint(data, at)
            value = data[at: at + size]
            assert len(value) == size, "a message is cut"
            at += size
        yield key >> 3, value


def message(data):
    found = collections.defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


def read_perfetto(data):
    """(slices in nanoseconds, counters by name)."""
    tracks, open_slices, slices, counters, last = {}, collections.defaultdict(list), [], collections.defaultdict(list), {}
    for number, raw in fields(data):
        assert number == 1, "only packets"
        packet = message(raw)
        if 60 in packet:
            track = message(packet[60][0])
            thread = message(track[4][0]) if 4 in track else None
            tracks[track[1][0]] = (thread[5] if thread else track[2] or message(track[3][0])[6])[0].decode()
            continue
        time, event = packet[8][0], message(packet[11][0])
        kind, track = event[9][0], event[11][0]
        assert time >= last.get(track, 0), "events of a track are in order"
        last[track] = time
        if kind == 1:
            arguments = {}
            for each in event[4]:
                annotation = message(each)
                arguments[annotation[10][0].decode()] = annotation[3][0] if 3 in annotation else annotation[6][0].decode()
            open_slices[track].append((event[23][0].decode(), time, arguments))
        elif kind == 2:
            name, begin, arguments = open_slices[track].pop()
            slices.append(Slice(tracks[track], name, begin, time, arguments))
        else:
            assert kind == 4, kind
            counters[tracks[track]].append((time, event[44][0]))
    assert not any(open_slices.values()), "a slice has no end"
    return slices, counters


def read_chrome(text):
    """(slices in microseconds, counters by name)."""
    events = json.loads(text)["traceEvents"]
    tracks = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    counters = collections.defaultdict(list)
    for each in events:
        if each["ph"] == "C":
            counters[each["name"]].append((each["ts"], each["args"]["value"]))
    slices = [Slice(tracks[each["tid"]], each["name"], each["ts"], each["ts"] + each["dur"], each["args"]) for each in events if each["ph"] == "X"]
    return slices, counters
