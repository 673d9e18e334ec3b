"""The bytes under HDF5: a file object that makes a flush as short as it can be and stops writing for good at the first error.

HDF5 gets its file through this object (h5py's fileobj driver) for three reasons. A flush changes structure in place, and a process killed halfway through
would leave it torn: what a flush writes is therefore collected, blocks that nothing refers to yet go out first, the few changed ones last, in an order that
leaves a readable file after each (flush_order.py). After a failed write HDF5 can neither flush nor close and complains until the process ends: here it is
told all went well, and the file stays what it was at its last flush. And a forked child that ends must not write the structure it inherited.
"""
import os

from .flush_order import in_order


class Disk:
    """A file at `path`, created or emptied. `error` is the first OSError; `size` the bytes a reader may count on."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0), 0o666)
        self._position = self._settled = 0  # _settled: end of what the last flush left behind
        self._collected = None
        self._process, self.error = os.getpid(), None

    def collect(self):
        """From now on writes gather in memory."""
        self._collected = []

    def settle(self):
        """Writes what has gathered: new blocks, then changes to what a reader may already see (the superblock first: it says how far the file reaches)."""
        blocks, self._collected = self._collected or [], None
        for address, data in sorted(b for b in blocks if b[0] >= self._settled):
            self._put(address, data)
        for address, data in in_order([b for b in blocks if b[0] < self._settled], self._read):
            self._put(address, data)
        if self.error is None:
            self._settled = os.fstat(self._fd).st_size

    def _put(self, address, data):
        if self.error is not None or os.getpid() != self._process:
            return
        view = memoryview(data).cast("B")
        try:
            while view.nbytes:
                done = os.pwrite(self._fd, view[:1 << 30], address)
                address, view = address + done, view[done:]
        except OSError as e:
            self.error = e

    def _read(self, address, count):
        return os.pread(self._fd, count, address)

    # what h5py calls

    def seek(self, offset, whence=0):
        self._position = offset + (0 if whence == 0 else self._position if whence == 1 else os.fstat(self._fd).st_size)
        return self._position

    def tell(self):
        return self._position

    def write(self, data):
        if self._collected is None:
            self._put(self._position, data)
        else:
            self._collected.append((self._position, bytes(data)))
        return len(data)

    def readinto(self, buffer):
        data = os.pread(self._fd, len(buffer), self._position)
        buffer[:len(data)] = data
        for address, block in self._collected or ():  # a block may be asked for again before it is out
            first, last = max(address, self._position), min(address + len(block), self._position + len(buffer))
            if first < last:
                buffer[first - self._position:last - self._position] = block[first - address:last - address]
        return len(buffer)

    def truncate(self, size):
        if self.error is None and os.getpid() == self._process:
            try:
                os.truncate(self._fd, size)
            except OSError as e:
                self.error = e
        return size

    def flush(self):
        pass

    def close(self):
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
