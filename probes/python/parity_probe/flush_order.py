"""The order in which a flush changes what a reader may already see: after each single write the file holds all it held before.

HDF5's structures as libver "earliest" writes them (File Format Specification 2.0, III.A to III.D): a group is a B-tree of symbol nodes, whose names lie in a local
heap. Names go out before the nodes that use them, a B-tree node before its children (a child that was split keeps both halves until the parent knows of the
other one), object headers with the sizes of datasets last.
"""
import struct

_HEAP = struct.Struct("<8sQQQ")  # a local heap's header: "HEAP" and version, bytes of its data segment, offset of the first free block there, its address
_NO_FREE_BLOCK = 1              # a heap whose free blocks do not fit its header is refused as a whole; one without any is read


def in_order(blocks, read):
    """The writes that bring `blocks` [(address, bytes)] into a file that never uses space again; `read(address, count)` gives what the file holds before."""
    heaps = [(address, _HEAP.unpack(read(address, _HEAP.size))) for address, data in blocks if data[:4] == b"HEAP"]
    for address, (mark, size, _, segment) in heaps:  # until the new names and then the new header are there
        yield address, _HEAP.pack(mark, size, _NO_FREE_BLOCK, segment)
    segments = {segment for _, (*_, segment) in heaps}
    yield from sorted(blocks, key=lambda block: _turn(*block, segments))


def _turn(address, data, segments):
    if address == 0:
        return 0, 0, address  # the superblock: how far the file reaches
    mark = data[:4]
    if mark == b"HEAP" or address in segments:
        return 1, mark == b"HEAP", address
    if mark == b"TREE":
        return 2, -data[5], address  # from the root down
    return 3 if mark == b"SNOD" else 4, 0, address
