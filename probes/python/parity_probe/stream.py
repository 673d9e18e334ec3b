"""What a Writer writes, sent to a listening `parity-check watch REF` instead of into a file: parity_probe.Writer("parity://HOST:PORT").

One line of JSON a message, {"e": kind, …}, and behind a "value" its `n` raw bytes (row-major, little-endian): "hello" first, then "value" and the "point" that
names it, in turn, "end" last. The listener sends "stop", with the path of the first divergence and what is wrong there, and, where it judges in step with the program,
"ahead": how many outputs in all may be sent before the program waits to be let further. Sending blocks while the listener does not read. Whoever can reach the
listener can send to it: nothing is encrypted, nobody is asked for a name.
"""
import json
import socket
import sys

import numpy as np

from .errors import Error, Stopped

SCHEME, FORMAT = "parity://", "parity-stream/1"
CONNECT_SECONDS = 10
MOST_ANSWER = 1 << 20  # bytes of a line
FIRST_WORD, LAST_WORD = .1, 10  # seconds: a listener that judges in step answers the first line


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
        self._outputs, self._let = 0, None  # sent; how many the listener lets (None: any number)
        try:
            self._socket = socket.create_connection(address_of(path), timeout=CONNECT_SECONDS)
            self._socket.settimeout(None)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as e:
            raise Error(f"{path}: nothing listens there ({e.strerror or e}); start parity-check watch REF first") from e
        self._send({"e": "hello", "format": FORMAT, "waits": True, "level": level, "producer": producer, "model": model, "provenance": provenance or {}})

    def value(self, key, dtype, bits):
        """Sends `bits`, a C-contiguous numpy array of `element_types.carrier(dtype)`. Raises parity_probe.Error when it cannot, Stopped when told to stop."""
        raw = bits.reshape(-1).view(np.uint8)
        if sys.byteorder != "little":
            raise Error(f"{self.path}: only little-endian machines can stream")
        self._send({"e": "value", "k": key, "d": dtype, "s": list(bits.shape), "n": raw.nbytes}, raw)

    def event(self, **event):
        """Sends one event of FORMAT.md; the next output when the listener lets it."""
        if event.get("e") == "point" and event.get("role") == "output":
            self._wait_to_be_let()
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
            self._listen()
            self._send({"e": "end", "complete": bool(complete)}, last=True)
            self._wait_for_the_end()
        finally:
            self.abandon()

    def abandon(self):
        """Goes without a word: the listener reports what it has as partial."""
        if not self.closed:
            self.closed = True
            self._socket.close()

    def _send(self, message, raw=None, last=False):
        """`last`: nothing is heard behind it; a listener that has read it may go."""
        line = (json.dumps(message, separators=(",", ":"), allow_nan=False) + "\n").encode()
        try:
            self._socket.sendall(line)
            if raw is not None and raw.size:
                self._socket.sendall(raw)
        except OSError as e:
            self._listen()
            raise Error(f"{self.path}: parity-check watch is gone ({e.strerror or e})") from e
        if not last:
            self._listen()

    def _wait_to_be_let(self):
        """Waits while the listener has not let the program so far. Raises as _listen."""
        if self._outputs == 0 and self._has_bytes(FIRST_WORD):
            self._listen()
        while self._let is not None and self._outputs >= self._let:
            self._has_bytes(None)
            self._listen()
        self._outputs += 1

    def _wait_for_the_end(self):
        """What a listener says to a socket that is closed ends the connection, also before it has read everything: one that says more than to stop is waited for."""
        try:
            if self._let is not None:
                self._socket.shutdown(socket.SHUT_WR)
                while self._has_bytes(LAST_WORD) and self._socket.recv(1 << 16):
                    pass
        except OSError:  # it has gone
            pass

    def _has_bytes(self, seconds):
        """Waits for something to hear, so long at most; False when nothing came."""
        self._socket.settimeout(seconds)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except socket.timeout:
            return False
        except OSError:  # gone, which whoever reads next hears
            pass
        finally:
            self._socket.settimeout(None)
        return True

    def _listen(self):
        """Looks, without waiting, what the listener says. Raises Stopped when it says stop, parity_probe.Error when it has gone."""
        try:
            while len(self._answer) <= MOST_ANSWER and (more := self._socket.recv(1 << 16, socket.MSG_DONTWAIT)):
                self._answer += more
                while b"\n" in self._answer:
                    line, _, self._answer = self._answer.partition(b"\n")
                    self._take(line)
        except BlockingIOError:  # nothing more to hear
            return
        except OSError as e:
            raise Error(f"{self.path}: parity-check watch is gone ({e.strerror or e})") from e
        raise Error(f"{self.path}: parity-check watch has ended")

    def _take(self, line):
        """One line of the listener's: how far the program may go, or that it must stop. Raises as _listen."""
        try:
            said = json.loads(line)
            if "outputs" in said:
                self._let = int(said["outputs"])
                return
            path, diagnosis = str(said["path"]), str(said["diagnosis"])
        except (ValueError, KeyError, TypeError) as e:
            raise Error(f"{self.path}: what listens there is not parity-check watch") from e
        raise Stopped(self.path, path, diagnosis)
