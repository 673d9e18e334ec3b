"""What a Writer writes, sent to a listening `parity-check watch REF` instead of into a file: parity_probe.Writer("parity://HOST:PORT").

One line of JSON a message, {"e": kind, …}, and behind a "value" its `n` raw bytes (row-major, little-endian): "hello" first, then "value" and the "point" that
names it, in turn, "end" last. The listener sends one line at most: "stop", with the path of the first divergence and what is wrong there. Sending blocks while the
listener does not read. Whoever can reach the listener can send to it: nothing is encrypted, nobody is asked for a name.
"""
import json
import socket
import sys

import numpy as np

from .errors import Error, Stopped

SCHEME, FORMAT = "parity://", "parity-stream/1"
CONNECT_SECONDS = 10
MOST_ANSWER = 1 << 20  # bytes of a stop line


def address_of(path):
    """(host, port) of "parity://HOST:PORT"; None for any other path. Raises parity_probe.Error for one that is not complete."""
    if not path.startswith(SCHEME):
        return None
    host, colon, port = path[len(SCHEME):].rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise Error(f"{path}: give parity://HOST:PORT, as parity-check watch prints it")
    return host.removeprefix("[").removesuffix("]"), int(port)


class StreamFile:
    """As DumpFile, for the levels that store values; `path` is "parity://HOST:PORT"."""

    def __init__(self, path, level, producer, model="", provenance=None):
        """Raises parity_probe.Error when nothing listens there."""
        self.path, self.closed, self._answer = path, False, b""
        try:
            self._socket = socket.create_connection(address_of(path), timeout=CONNECT_SECONDS)
            self._socket.settimeout(None)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as e:
            raise Error(f"{path}: nothing listens there ({e.strerror or e}); start parity-check watch REF first") from e
        self._send({"e": "hello", "format": FORMAT, "level": level, "producer": producer, "model": model, "provenance": provenance or {}})

    def value(self, key, dtype, bits):
        """Sends `bits`, a C-contiguous numpy array of `element_types.carrier(dtype)`. Raises parity_probe.Error when it cannot, Stopped when told to stop."""
        raw = bits.reshape(-1).view(np.uint8)
        if sys.byteorder != "little":
            raise Error(f"{self.path}: only little-endian machines can stream")
        self._send({"e": "value", "k": key, "d": dtype, "s": list(bits.shape), "n": raw.nbytes}, raw)

    def event(self, **event):
        """Sends one event of FORMAT.md."""
        self._send(event)

    def link(self, group, name, key):
        """A stream has no groups: the point that names the value says its role."""

    def flush(self):
        """Everything is sent at once; looks whether the listener said to stop."""
        self._listen()

    def close(self, complete=True):
        """Says that nothing follows, and goes."""
        if self.closed:
            return
        try:
            self._send({"e": "end", "complete": bool(complete)})
        finally:
            self.abandon()

    def abandon(self):
        """Goes without a word: the listener reports what it has as partial."""
        if not self.closed:
            self.closed = True
            self._socket.close()

    def _send(self, message, raw=None):
        line = (json.dumps(message, separators=(",", ":"), allow_nan=False) + "\n").encode()
        try:
            self._socket.sendall(line)
            if raw is not None and raw.size:
                self._socket.sendall(raw)
        except OSError as e:
            self._listen()
            raise Error(f"{self.path}: parity-check watch is gone ({e.strerror or e})") from e
        self._listen()

    def _listen(self):
        """Looks, without waiting, whether a stop line came. Raises Stopped then, parity_probe.Error when the listener has gone."""
        try:
            while b"\n" not in self._answer:
                more = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
                if not more or len(self._answer) > MOST_ANSWER:
                    raise Error(f"{self.path}: parity-check watch has ended")
                self._answer += more
        except BlockingIOError:  # nothing more to hear
            pass
        except OSError as e:
            raise Error(f"{self.path}: parity-check watch is gone ({e.strerror or e})") from e
        if b"\n" in self._answer:
            try:
                said = json.loads(self._answer.partition(b"\n")[0])
                path, diagnosis = str(said["path"]), str(said["diagnosis"])
            except (ValueError, KeyError, TypeError) as e:
                raise Error(f"{self.path}: what listens there is not parity-check watch") from e
            raise Stopped(self.path, path, diagnosis)
