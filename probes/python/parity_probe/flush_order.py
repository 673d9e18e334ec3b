"""The order in which a flush changes what a reader may already see: after each single write the file holds all it held before.

HDF5's structures as libver "earliest" writes them (File Format Specification 2.0, III.A to III.D): a group is a B-tree of symbol nodes, whose names lie in a local
heap. Names go out before the nodes that use them, a B-tree node before its children (a child that was split keeps both halves until the parent knows of the
other one), object headers with the sizes of datasets last.
"""
import struct

_HEAP = struct.Struct("<4s4xQQQ")  # a local heap's header: "HEAP", bytes of its data segment, offset of the first free block there, address of the segment
_FREE_BLOCK = 16                   # bytes that say how far a free block reaches; a heap without them is refused as a whole


def in_order(blocks, read):
    """The writes that bring `blocks` [(address, bytes)] into a file that never uses space again; `read(address, count)` gives what the file holds before."""
    kept = [_free_block(data, read(address, _HEAP.size)) for address, data in blocks if data[:4] == b"HEAP"]
    names = [(address, data, free - address) for free in kept for address, data in blocks if address <= free < address + len(data)]
    for address, data, free in names:  # all but the bytes by which the old header finds its free block
        yield address, data[:free] + read(address + free, _FREE_BLOCK) + data[free + _FREE_BLOCK:]
    yield from sorted(blocks, key=lambda block: _turn(*block, {address for address, *_ in names}))


def _free_block(new, old):
    """Address of the free block an old heap header names, if the new one fills the same data segment; 0 otherwise."""
    mark, size, free, segment = _HEAP.unpack(old)
    separate = len(new) == _HEAP.size  # else header and names are one write
    return segment + free if separate and mark == b"HEAP" and free < size and segment == _HEAP.unpack(new)[3] else 0


def _turn(address, data, names):
    if address == 0:
        return 0, 0, address  # the superblock: how far the file reaches
    mark = data[:4]
    if mark == b"HEAP" or address in names:
        return 1, address in names, address
    if mark == b"TREE":
        return 2, -data[5], address  # from the root down
    return 3 if mark == b"SNOD" else 4, 0, address
