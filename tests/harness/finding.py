# SPDX-License-Identifier: Apache-2.0
"""What the leak oracle found, so that a finding that does not come again can be explained: the place and the request, the
offset in it, the field that holds it, and the bytes around it."""
import struct

import otlp_collector_pb2 as collector
import pprof_pb2
from google.protobuf.descriptor import FieldDescriptor

from harness import canaries

AROUND = 100  # bytes before and after
SHOWN = 12  # findings
KINDS = (collector.ExportProfilesServiceRequest.DESCRIPTOR, pprof_pb2.Profile.DESCRIPTOR)


def read_varint(data, at):
    """(value, what follows it)"""
    value = shift = 0
    while data[at] > 127:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def read_field(data, at):
    """(number, wire type, where its value begins and ends). IndexError or ValueError: there is none."""
    tag, at = read_varint(data, at)
    number, wire = tag >> 3, tag & 7
    if not number or wire not in (0, 1, 2, 5):
        raise ValueError("no field")
    if wire == 0:
        end = read_varint(data, at)[1]
    elif wire == 2:
        length, at = read_varint(data, at)
        end = at + length
    else:
        end = at + (8 if wire == 1 else 4)
    if end > len(data):
        raise ValueError("cut off")
    return number, wire, at, end


def path_of(data, offset, descriptor):
    """The path to the field that has the byte at this offset: "resource_profiles[0].scope_profiles[1].scope.name". A number
    stands for a field that the protocol does not have. None: the data are no such message."""
    at, path, counts = 0, None, {}
    try:
        while at < len(data):
            number, wire, begin, end = read_field(data, at)
            field = descriptor.fields_by_number.get(number)
            counts[number] = counts.get(number, -1) + 1
            if at <= offset < end:
                path = str(number) if field is None else field.name
                if field is not None and field.label == FieldDescriptor.LABEL_REPEATED:
                    path += "[%d]" % counts[number]
                if field is not None and field.message_type and wire == 2 and offset >= begin:
                    below = path_of(data[begin:end], offset - begin, field.message_type)
                    path += "." + (below or "?")
            at = end
    except (IndexError, ValueError):
        return None
    return path


def field_at(piece, offset):
    """The same for whichever message it is; "": none of those."""
    return next((d.name + "." + path for d in KINDS for path in [path_of(piece, offset, d)] if path), "")


def around(data, offset, length):
    before, after = data[max(0, offset - AROUND):offset], data[offset + length:offset + length + AROUND]
    return "%r>>%r<<%r" % (before, data[offset:offset + length], after)


def _text(c, piece):
    """(kind, offset, length, view) of each denied word; view: where else than in the bytes themselves."""
    views = b"\n".join(canaries.views(piece))
    for word, offset in canaries.matches(c.denied, views):
        yield "%s (%r)" % (c.denied[word], word), offset, len(word), views if offset >= len(piece) else None


def _numbers(c, piece):
    for kind, number in c.numbers.items():
        for needle in ([struct.pack("<d", number)] if isinstance(number, float) else
                       [canaries.varint(number), number.to_bytes(8, "little")]):
            if needle in piece:
                yield kind + " in binary", piece.index(needle), len(needle), None


def describe(c, place, pieces):
    """A line for each of the first findings among these requests or files, bytes each."""
    lines = []
    for number, piece in enumerate(pieces):
        for kind, offset, length, views in [*_text(c, piece), *_numbers(c, piece)]:
            where = ("in base64 or hexadecimal, as " if views else
                     "at byte %d of %d, %s: " % (offset, len(piece), field_at(piece, offset) or "no protobuf"))
            lines.append("%s, piece %d of %d, %s: %s%s" % (place, number, len(pieces), kind, where,
                                                         around(views or piece, offset, length)))
            if len(lines) == SHOWN:
                return lines
    return lines
