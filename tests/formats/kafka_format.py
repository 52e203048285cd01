"""Kafka's record batch v2 and segment indexes, from the published description of the format.

Written apart from the C++ code, so that the two can be held against each other. Integers are
big-endian; varints are zigzag. Compression goes through the shared libraries of lz4 and zstd.
"""

import ctypes
import struct
from dataclasses import dataclass, field
from typing import List, Optional, Tuple


def _crc_table():
    table = []
    for index in range(256):
        value = index
        for _ in range(8):
            value = (value >> 1) ^ 0x82F63B78 if value & 1 else value >> 1
        table.append(value)
    return table


_CRC_TABLE = _crc_table()


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = _CRC_TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def varint(value):
    bits = (value << 1) ^ (value >> 63)
    bits &= (1 << 64) - 1
    out = bytearray()
    while bits >= 0x80:
        out.append((bits & 0x7F) | 0x80)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def take_varint(data, at):
    bits = shift = 0
    while True:
        byte = data[at]
        at += 1
        bits |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (bits >> 1) ^ -(bits & 1), at


@dataclass
class Record:
    timestamp: int
    key: Optional[bytes]
    value: Optional[bytes]
    headers: List[Tuple[bytes, Optional[bytes]]] = field(default_factory=list)


def _nullable(data):
    return varint(-1) if data is None else varint(len(data)) + data


def _take_nullable(data, at):
    length, at = take_varint(data, at)
    if length == -1:
        return None, at
    return data[at:at + length], at + length


def encode_record(record, offset_delta, base_timestamp):
    body = b"\0" + varint(record.timestamp - base_timestamp) + varint(offset_delta)
    body += _nullable(record.key) + _nullable(record.value) + varint(len(record.headers))
    for key, value in record.headers:
        body += _nullable(key) + _nullable(value)
    return varint(len(body)) + body


CODECS = {"none": 0, "lz4": 3, "zstd": 4}


def encode_batch(records, base_offset=0, leader_epoch=-1, codec="none", producer=(-1, -1, -1),
                 packed=None):
    """`packed` stands for the compressed records: compressors may differ and both be right."""
    base_timestamp = records[0].timestamp
    body = b"".join(encode_record(r, i, base_timestamp) for i, r in enumerate(records))
    if codec != "none":
        body = packed if packed is not None else compress(codec, body)
    covered = struct.pack(">hiqqqhii", CODECS[codec], len(records) - 1, base_timestamp,
                          max(r.timestamp for r in records), *producer, len(records)) + body
    after_length = struct.pack(">ibI", leader_epoch, 2, crc32c(covered)) + covered
    return struct.pack(">qi", base_offset, len(after_length)) + after_length


@dataclass
class Batch:
    base_offset: int
    leader_epoch: int
    codec: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer: Tuple[int, int, int]
    size: int
    packed: bytes
    offsets: List[int]
    records: List[Record]

    @property
    def last_offset(self):
        return self.base_offset + self.last_offset_delta


def decode_batch(data, at=0):
    base_offset, length = struct.unpack_from(">qi", data, at)
    end = at + 12 + length
    leader_epoch, magic, crc = struct.unpack_from(">ibI", data, at + 12)
    assert magic == 2, magic
    assert crc == crc32c(data[at + 21:end]), "crc"
    (attributes, last_delta, base_timestamp, max_timestamp, producer_id, producer_epoch, sequence,
     count) = struct.unpack_from(">hiqqqhii", data, at + 21)
    packed = data[at + 61:end]
    codec = attributes & 7
    body = packed if codec == 0 else decompress(codec, packed)
    offsets, records, position = [], [], 0
    for _ in range(count):
        length, position = take_varint(body, position)
        record_end = position + length
        position += 1
        timestamp_delta, position = take_varint(body, position)
        offset_delta, position = take_varint(body, position)
        key, position = _take_nullable(body, position)
        value, position = _take_nullable(body, position)
        header_count, position = take_varint(body, position)
        headers = []
        for _ in range(header_count):
            header_key, position = _take_nullable(body, position)
            header_value, position = _take_nullable(body, position)
            headers.append((header_key, header_value))
        assert position == record_end
        offsets.append(base_offset + offset_delta)
        records.append(Record(base_timestamp + timestamp_delta, key, value, headers))
    assert position == len(body)
    return Batch(base_offset, leader_epoch, codec, last_delta, base_timestamp, max_timestamp,
                 (producer_id, producer_epoch, sequence), end - at, packed, offsets, records)


def decode_segment(data):
    batches, at = [], 0
    while at < len(data):
        batches.append((at, decode_batch(data, at)))
        at += batches[-1][1].size
    return batches


def expected_indexes(batches, base_offset, interval, closed):
    """The two index files of a segment whose batches were appended one by one.

    A batch gets an entry when more than `interval` bytes came since the last one: its last offset
    and position; and the greatest timestamp so far with the last offset of the batch that had it
    first, if that is later than the last entry's. A closed segment ends with such an entry.
    """
    index, time_index = b"", b""
    since, greatest, greatest_offset, last_time = 0, -1, -1, -1

    def add_time():
        nonlocal time_index, last_time
        if greatest > last_time:
            time_index += struct.pack(">qi", greatest, greatest_offset - base_offset)
            last_time = greatest

    for position, batch in batches:
        if batch.max_timestamp > greatest:
            greatest, greatest_offset = batch.max_timestamp, batch.last_offset
        if since > interval:
            index += struct.pack(">ii", batch.last_offset - base_offset, position)
            add_time()
            since = 0
        since += batch.size
    if closed:
        add_time()
    return index, time_index


# --- Compression through the shared libraries ----------------------------------------------------

_lz4 = ctypes.CDLL("liblz4.so.1")
_zstd = ctypes.CDLL("libzstd.so.1")
for _name in ("LZ4F_compressFrameBound", "LZ4F_compressFrame", "LZ4F_decompress",
              "LZ4F_createDecompressionContext", "LZ4F_freeDecompressionContext"):
    getattr(_lz4, _name).restype = ctypes.c_size_t
for _name in ("ZSTD_compressBound", "ZSTD_compress", "ZSTD_decompress"):
    getattr(_zstd, _name).restype = ctypes.c_size_t

_UNPACKED_LIMIT = 1 << 20


def compress(codec, data):
    if codec == "lz4":
        # Null preferences would link the blocks, which Kafka's readers refuse. blockSizeID 4 is
        # 64 KiB, blockMode 1 independent.
        preferences = struct.pack("<iiiiQIi", 4, 1, 0, 0, 0, 0, 0) + bytes(24)
        bound = _lz4.LZ4F_compressFrameBound(ctypes.c_size_t(len(data)), preferences)
        out = ctypes.create_string_buffer(bound)
        size = _lz4.LZ4F_compressFrame(out, ctypes.c_size_t(bound), data,
                                       ctypes.c_size_t(len(data)), preferences)
        return out.raw[:size]
    bound = _zstd.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(bound)
    size = _zstd.ZSTD_compress(out, ctypes.c_size_t(bound), data, ctypes.c_size_t(len(data)), 5)
    return out.raw[:size]


def decompress(codec, data):
    out = ctypes.create_string_buffer(_UNPACKED_LIMIT)
    if codec == 4:
        size = _zstd.ZSTD_decompress(out, ctypes.c_size_t(_UNPACKED_LIMIT), data,
                                     ctypes.c_size_t(len(data)))
        assert size <= _UNPACKED_LIMIT
        return out.raw[:size]
    assert codec == 3, codec
    # Magic; version 1, independent blocks: what a Kafka reader insists on.
    assert data[:4] == b"\x04\x22\x4d\x18" and data[4] & 0xE0 == 0x60
    context = ctypes.c_void_p()
    assert _lz4.LZ4F_createDecompressionContext(ctypes.byref(context), ctypes.c_uint(100)) == 0
    room, taken = ctypes.c_size_t(_UNPACKED_LIMIT), ctypes.c_size_t(len(data))
    left = _lz4.LZ4F_decompress(context, out, ctypes.byref(room), data, ctypes.byref(taken), None)
    _lz4.LZ4F_freeDecompressionContext(context)
    assert left == 0 and taken.value == len(data)
    return out.raw[:room.value]
