"""What the C++ header sends to a listener: the messages of Python's Writer, its answers to what a listener says, and back-pressure."""
import re
import socket
import subprocess
import time
from pathlib import Path

import ml_dtypes  # noqa: F401  numpy learns bfloat16 and float8
import numpy as np
import pytest
from stream_listener import StreamListener
from stream_port import SECONDS, Steps, ended, lines_so_far, settled, start  # noqa: F401  a fixture

import parity_probe

STOP = b'{"diagnosis":"two \\"quoted\\" \xc3\xa9 \\u00e9 \\ud83d\\ude00","call": 3,"e":"stop","path":"blocks.0/a\\\\b"}\n'


# --- the messages -------------------------------------------------------------------------------------------------------
def arrays():
    raw = ((37 * np.arange(24 * 16) + 11) % 256).astype(np.uint8)
    for name in ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "int32", "int16", "int8", "uint8", "complex64", "complex128"):
        kind = np.dtype(getattr(ml_dtypes, name, None) or name)
        yield name, raw[:24 * kind.itemsize].view(kind).reshape(2, 3, 4)
    yield "bool", np.array([[True, False], [False, True]])
    yield "scalar", np.array(3, np.int64)
    yield "empty", np.zeros((0, 5), np.float32)
    yield 'a/"quoted"\\path.é', np.ones(2, np.float16)
    yield "bool", np.array([True])  # call 1


def test_the_messages_are_those_of_the_python_writer(start, tmp_path):
    steps, heard, listener = Steps(tmp_path), [], StreamListener()
    for number, (path, array) in enumerate(arrays()):
        steps.tensor(path, array, ("output", "input", "weight")[number % 3])
    port = start(listener.address, steps)
    with listener:
        heard.append(listener.messages())
    assert ended(port) == (0, "", "")
    listener = StreamListener()
    with parity_probe.Writer(listener.address, config={"dim": 8}, model="Tiny", producer="stream_port") as w, listener:
        for number, (path, array) in enumerate(arrays()):
            w.write(path, array, ("output", "input", "weight")[number % 3])
        w.close()
        heard.append(listener.messages())
    sources = [[m.pop("src", "") for m, _ in one if m["e"] == "point"] for one in heard]
    about = [one[0][0].pop("provenance") for one in heard]
    assert heard[0] == heard[1] and len(heard[0]) == 2 * 18 + 2
    assert [list(m) for m, _ in heard[0]] == [list(m) for m, _ in heard[1]]  # in the same order
    assert about[0]["config"] == about[1]["config"] == {"dim": 8} and "stream_port parity://" in about[0]["command"]
    assert all(re.fullmatch(r"stream_port\.cpp:\d+ in tensor", source) for source in sources[0])


def test_types_of_cpp_and_turned_axes_arrive_row_major(start):
    listener = StreamListener()
    port = start(listener.address, ["typed"])
    with listener:
        values = {point[0]["path"]: np.frombuffer(value[1], value[0]["d"]).reshape(value[0]["s"])
                  for value, point in zip(*[iter(listener.messages()[1:-1])] * 2)}
    assert ended(port) == (0, "", "")
    wanted = {"float": np.array([1.5, -0.], "f4"), "double": np.array(1e300), "whole": np.array([[1 << 62], [-1]]), "truth": np.array([True, False, True]),
              "complex": np.array([1 - 2j], "c8"), "turned": np.arange(6, dtype="i2").reshape(2, 3).T}
    assert values.keys() == wanted.keys()
    for path, array in wanted.items():
        assert values[path].dtype == array.dtype and values[path].shape == array.shape and values[path].tobytes() == array.tobytes(), path


@pytest.mark.parametrize("last, status, said, end", [
    ("leave", 0, "", True),                        # the destructor closes
    ("close", 0, "", True),
    ("throw", 2, "the model failed\n", False),     # an exception is on its way
    ("exit", 9, "", None),
    ("fork", 0, "", True),                         # a child that ends first says nothing
])
def test_how_a_stream_ends(start, last, status, said, end):
    listener = StreamListener()
    port = start(listener.address, ["typed", "note all \"is\" well", "note ", last])
    with listener:
        messages = [m for m, _ in listener.messages()]
    assert ended(port) == (status, "", said)
    kinds = [m["e"] for m in messages]
    assert kinds == ["hello"] + ["value", "point"] * 6 + ["note"] * 2 + ["end"] * (end is not None)
    assert end is None or messages[-1] == {"e": "end", "complete": end}
    assert messages[13] == {"e": "note", "text": 'all "is" well'}


def test_threads_do_not_mix_their_messages(start):
    listener = StreamListener()
    port = start(listener.address, ["threads"])
    with listener:
        pairs = list(zip(*[iter(listener.messages()[1:-1])] * 2))
    assert ended(port) == (0, "", "") and len(pairs) == 1600
    for (value, raw), (point, _) in pairs:
        assert value["e"] == "value" and point["e"] == "point" and value["k"] == point["k"] == str(point["v"])
        assert point["path"] == "all" or (np.frombuffer(raw, "i4") == int(point["path"][-1])).all()
    assert sorted(p["call"] for _, (p, _) in pairs if p["path"] == "all") == list(range(800))


def can_listen(host):
    try:
        socket.create_server((host, 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host, name", [("127.0.0.1", "localhost")] + [("::1", "[::1]"), ("::1", "::1")] * can_listen("::1"))
def test_names_of_hosts_and_ipv6(start, host, name):
    listener = StreamListener(host)
    port = start(f"parity://{name}:{listener.address.rpartition(':')[2]}", ["typed"])
    with listener:
        assert listener.messages()[-1][0] == {"e": "end", "complete": True}
    assert ended(port) == (0, "", "")


_TWO_ADDRESSES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
int getaddrinfo(const char* host, const char* port, const struct addrinfo* wanted, struct addrinfo** found) {
  int (*real)(const char*, const char*, const struct addrinfo*, struct addrinfo**) = dlsym(RTLD_NEXT, "getaddrinfo");
  (void)host;
  int problem = real("127.0.0.2", port, wanted, found);
  return problem ? problem : real("127.0.0.1", port, wanted, &(*found)->ai_next);
}
"""


def test_a_host_of_several_addresses(start, tmp_path):
    """As localhost on many machines: nobody listens at the first."""
    (tmp_path / "two.c").write_text(_TWO_ADDRESSES)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "two.so"), str(tmp_path / "two.c"), "-ldl"], check=True)
    listener = StreamListener()
    port = start(f"parity://two:{listener.address.rpartition(':')[2]}", ["typed"], LD_PRELOAD=str(tmp_path / "two.so"))
    with listener:
        assert listener.messages()[-1][0] == {"e": "end", "complete": True}
    assert ended(port) == (0, "", "")


# --- what can go wrong --------------------------------------------------------------------------------------------------
def python_says(address):
    with pytest.raises(parity_probe.Error) as raised:
        parity_probe.Writer(address)
    return f"{raised.value}\n"


@pytest.mark.parametrize("address", ["parity://", "parity://here", "parity://here:", "parity://:80", "parity://here:99999", "parity://here:0", "parity://here:8x",
                                     "parity://no-such-host.invalid:7077", None])
def test_nobody_listens(start, address):
    """One line, the same as Python's Writer says."""
    if address is None:
        with socket.create_server(("127.0.0.1", 0)) as s:
            address = "parity://127.0.0.1:%d" % s.getsockname()[1]
    status, out, err = ended(start(address, ["typed"]))
    assert (status, out) == (2, "") and err == python_says(address) and address in err
    assert "start parity-check watch REF first" in err or "give parity://HOST:PORT, as parity-check watch prints it" in err


@pytest.mark.parametrize("level", ["sketch", "stats"])
def test_levels_without_values_cannot_be_streamed(start, level):
    listener = StreamListener()
    assert ended(start(listener.address, [], level)) == (2, "", f"{listener.address}: level {level} cannot be streamed\n")


def test_stop_is_thrown_by_the_next_call_and_every_later_one(start):
    listener = StreamListener()
    port = start(listener.address, ["until-stopped"])
    with listener:
        for _ in range(5):
            listener.message()
        listener.say(STOP[:20])
        listener.message()
        listener.say(STOP[20:])
        assert "end" not in [m["e"] for m, _ in listener.messages()]
        status, out, err = ended(port)
    message = f'{listener.address}: stopped by parity-check watch: first divergence at blocks.0/a\\b: two "quoted" é é 😀'
    assert (status, err) == (0, "") and out.splitlines() == [f'stopped at [blocks.0/a\\b] because [two "quoted" é é 😀]: {message}'] * 5


def test_the_write_after_a_stop_throws(start, tmp_path):
    listener = StreamListener()
    port = start(listener.address, ["typed", f"wait {tmp_path / 'go'}", "typed"])
    with listener:
        assert port.stdout.readline() == "waiting\n"
        listener.say(STOP)
        (tmp_path / "go").touch()
        assert [m["e"] for m, _ in listener.messages()][13:] == ["value"]
        assert ended(port)[0] == 7


@pytest.mark.parametrize("answer, says", [
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "what listens there is not parity-check watch"),
    (b'{"path":"a","diagnosis":{}}\n', "what listens there is not parity-check watch"),
    (b'{"path":"a","diagnosis":"\\ud800"}\n', "what listens there is not parity-check watch"),
    (b'{"path":"a"}\n', "what listens there is not parity-check watch"),
    (b"x" * (1 << 20), "what listens there is not parity-check watch"),
    (b"", "parity-check watch (has ended|is gone \\(.*\\)); nothing more is sent: start it and this program again"),
])
def test_a_listener_that_goes_or_is_another_does_not_disturb_the_program(start, answer, says):
    listener = StreamListener()
    port = start(listener.address, ["until-error", "close"])
    with listener:
        for _ in range(3):  # the writer is there, and has written
            listener.message()
        listener.say(answer)
        if answer:
            listener.messages()
        else:
            listener.hang_up()
        status, out, err = ended(port)
    assert (status, out) == (2, "went on without recording\n")
    assert re.fullmatch(f"{re.escape(listener.address)}: {says}.*\n", err), err


@pytest.mark.parametrize("last, status, prefix", [("leave", 0, "parity_probe: "), ("close", 2, ""), ("flush-each", 2, "")])
def test_a_lost_listener_is_told_once(start, last, status, prefix):
    """By the destructor, close or flush."""
    listener = StreamListener()
    port = start(listener.address, ["until-error", last])
    with listener:
        for _ in range(3):
            listener.message()
    got, out, err = ended(port)
    assert (got, out) == (status, "went on without recording\n")
    assert err.startswith(f"{prefix}{listener.address}: parity-check watch ") and err.count("\n") == 1, err


# --- back-pressure ------------------------------------------------------------------------------------------------------
def memory(process, what):
    """MiB."""
    return int(re.search(rf"{what}:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())[1]) / 1024


def test_a_slow_listener_holds_the_program_back(start):
    """8 tensors of 32 MiB: the program waits within the first (buffers of sockets take a few MiB), and holds no other copy of any."""
    listener, lines = StreamListener(), []
    port = start(listener.address, [f"big 8 {8 << 20}"])
    reader = lines_so_far(port, lines)
    with listener:
        listener.message()
        assert settled(lambda: len(lines)) == 0 and port.poll() is None
        assert memory(port, "VmHWM") < 32 + 24
        for number in range(8):
            (value, raw), (point, _) = listener.message(), listener.message()
            assert len(lines) <= number + 1
            assert (value["s"], point["call"]) == ([8 << 20], number) and raw == np.full(8 << 20, number, "i4").tobytes()
            peak = memory(port, "VmHWM") if number < 7 else peak
            time.sleep(.05)
        assert peak < 32 + 24
        assert listener.messages() == [({"e": "end", "complete": True}, b"")]
    assert port.wait(SECONDS) == 0
    reader.join()
    assert lines == [f"sent {k}\n" for k in range(8)]


def test_signals_do_not_tear_a_tensor(start):
    """A handler runs every 2 ms while 16 MiB are sent to a slow listener."""
    listener = StreamListener()
    port = start(listener.address, ["interrupted"])
    with listener:
        listener.message()
        time.sleep(.3)
        (value, raw), (point, _) = listener.message(), listener.message()
        assert raw == np.full(4 << 20, 7, "i4").tobytes() and point["path"] == "interrupted"
        assert listener.messages()[-1][0]["complete"] is True
    assert ended(port) == (0, "", "")
