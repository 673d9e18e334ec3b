"""What listens to a stream in place of parity-check watch: reads the messages, at whatever pace, and says what it is told to say."""
import json
import socket


class StreamListener:
    """Listens at `address`; `accept` waits for the program."""

    def __init__(self, host="127.0.0.1"):
        self._server = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._server.settimeout(60)
        self.address = f"parity://{f'[{host}]' if ':' in host else host}:{self._server.getsockname()[1]}"

    def accept(self):
        self.connection, _ = self._server.accept()
        self.connection.settimeout(60)
        self._file = self.connection.makefile("rb")
        return self

    def message(self):
        """(message, bytes of a value); None at the end of the stream, or where it breaks off."""
        line = self._file.readline()
        if not line.endswith(b"\n"):
            return None
        message = json.loads(line)
        raw = self._file.read(message["n"]) if message["e"] == "value" else b""
        return (message, raw) if len(raw) == message.get("n", 0) else None

    def messages(self):
        return list(iter(self.message, None))

    def say(self, data):
        self.connection.sendall(data)

    def hang_up(self):
        for one in (getattr(self, "_file", None), getattr(self, "connection", None), self._server):
            if one is not None:
                one.close()

    __enter__ = accept

    def __exit__(self, *_):
        self.hang_up()
