"""parity-check watch: real processes that stream to it, well and badly."""
import json
import pathlib
import signal
import socket
import subprocess
import sys

import pytest
import torch
from watched_port import FAULTY, gpt2

import parity_probe
import program
from program import BINARY

PORT = pathlib.Path(__file__).with_name("watched_port.py")
SECONDS = 120


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    file = tmp_path_factory.mktemp("watch") / "ref.h5"
    model, ids = gpt2()
    with torch.no_grad(), parity_probe.record(model, file):
        model(ids)
    return file


class Watch:
    """parity-check watch on a port that is free, and the programs that stream to it."""

    def __init__(self, reference, out, *options):
        self.out, self.ports = out, []
        self.process = subprocess.Popen([BINARY, "watch", str(reference), "--listen", "127.0.0.1:0", "--out", str(out), *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split('"')[1]

    def port(self, fault=False, wait="", prefix=""):
        self.ports.append(subprocess.Popen([sys.executable, str(PORT), self.address, str(int(fault)), str(wait), prefix], stdout=subprocess.PIPE, text=True))
        return self.ports[-1]

    def send(self, data):
        host, _, port = self.address.removeprefix("parity://").partition(":")
        with socket.create_connection((host, int(port))) as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                s.recv(1)
            except OSError:  # it may hang up first
                pass

    def end(self):
        """(exit status, stdout, stderr)."""
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, err

    def report(self):
        return json.loads((self.out / "report.json").read_text())


@pytest.fixture
def watch(reference, tmp_path):
    started = []

    def start(*options):
        started.append(Watch(reference, tmp_path / "out", *options))
        return started[-1]
    yield start
    for one in started:
        for process in [one.process, *one.ports]:
            if process.poll() is None:
                process.kill()
            process.communicate()


def streams(report):
    return [op for op in report["ops"] if op["path"] == "(stream)"]


def test_a_healthy_port_passes(watch):
    w = watch()
    assert w.port().wait(SECONDS) == 0
    status, out, err = w.end()
    report = w.report()
    assert status == 0, out + err
    assert "first divergence so far" not in out and not streams(report)
    assert report["counts"]["pass"] > 30 and report["candidate"]["producer"] == "watched_port" and report["candidate"]["path"] == w.address
    assert all(op["rerun"].startswith("parity-check watch ") for op in report["ops"])


def test_a_fault_is_told_while_the_port_still_runs(watch, tmp_path):
    w = watch()
    port = w.port(fault=True, wait=tmp_path / "go")
    assert w.process.stdout.readline().startswith(f"first divergence so far: {FAULTY}: ")
    assert port.poll() is None
    (tmp_path / "go").touch()
    assert port.wait(SECONDS) == 0
    status, out, err = w.end()
    report = w.report()
    assert status == 1, out + err
    assert report["first_divergence"]["path"] == FAULTY and not streams(report)
    assert not [op for op in report["ops"] if op["verdict"] == "missing"]


def test_stop_stops_the_port(watch, tmp_path):
    w = watch("--stop")
    port = w.port(fault=True, wait=tmp_path / "go")
    assert FAULTY in w.process.stdout.readline()
    (tmp_path / "go").touch()
    said, _ = port.communicate(timeout=SECONDS)
    assert port.returncode == 7 and f"\nstopped at {FAULTY} because " in said
    status, out, err = w.end()
    report = w.report()
    assert status == 1, out + err
    assert "next: parity-check watch " in out and " 'parity://" not in out  # no command gets an address as a file
    assert report["first_divergence"]["path"] == FAULTY and "told to stop" in streams(report)[0]["diagnosis"]


def test_a_map_names_the_tensors_of_a_port(watch, tmp_path):
    (tmp_path / "map").write_text("transformer.h.{i}.* = engine.transformer.h.{i}.*\n")  # says nothing about what arrives first
    w = watch("--map", str(tmp_path / "map"), "--stop")
    port = w.port(fault=True, wait=tmp_path / "go", prefix="engine.")
    assert FAULTY in w.process.stdout.readline()
    (tmp_path / "go").touch()
    assert port.wait(SECONDS) == 7
    assert w.end()[0] == 1
    report = w.report()
    assert report["first_divergence"]["candidate_path"] == f"engine.{FAULTY}"
    assert all(" --map " in op["rerun"] for op in report["ops"] if op["path"] != "(stream)")


def test_stop_lets_a_healthy_port_run(watch):
    w = watch("--stop")
    assert w.port().wait(SECONDS) == 0
    assert w.end()[0] == 0


@pytest.mark.parametrize("fault, expected", [(False, 3), (True, 1)])
def test_a_killed_port_leaves_a_partial_report(watch, tmp_path, fault, expected):
    w = watch()
    port = w.port(fault, wait=tmp_path / "never")
    assert port.stdout.readline() == "waiting\n"
    if fault:
        assert FAULTY in w.process.stdout.readline()
    port.kill()
    status, out, err = w.end()
    report = w.report()
    assert status == expected, out + err
    assert report["schema"] == "parity-report/1" and report["counts"]["pass"] > 10
    assert streams(report)[0]["verdict"] == "untrusted" and "connection ended" in streams(report)[0]["diagnosis"]


def test_an_interrupted_watch_leaves_a_partial_report(watch, tmp_path):
    w = watch()
    port = w.port(fault=True, wait=tmp_path / "go")
    assert FAULTY in w.process.stdout.readline()
    w.process.send_signal(signal.SIGINT)
    status, out, err = w.end()
    assert status == 1 and "interrupted" in streams(w.report())[0]["diagnosis"], out + err
    assert port.poll() is None


def line(**message):
    return (json.dumps(message) + "\n").encode()


HELLO = line(e="hello", format="parity-stream/1", level="module", producer="", model="", provenance={})
BAD = {
    "http": (b"GET / HTTP/1.1\r\n\r\n", "no line of JSON"),
    "bytes": (bytes(range(256)) * 3, "no line of JSON"),
    "another hello": (line(e="hello", format="parity-stream/9"), "first message"),
    "no end of line": (b"x" * (5 << 20), "more than 4194304 bytes"),
    "kind": (HELLO + line(e="bye"), "kind 'bye'"),
    "bytes contradict shape": (HELLO + line(e="value", k="0", d="float32", s=[2, 3], n=20) + bytes(20), "not those of its dtype and shape"),
    "negative": (HELLO + line(e="value", k="0", d="float32", s=[-1, 3], n=20), "not those of its dtype and shape"),
    "overflow": (HELLO + line(e="value", k="0", d="float32", s=[1 << 62, 1 << 62], n=0), "not those of its dtype and shape"),
    "huge": (HELLO + line(e="value", k="0", d="float32", s=[1 << 50], n=4 << 50), "too large for this machine"),
    "dtype": (HELLO + line(e="value", k="0", d="float33", s=[1], n=4) + bytes(4), "float33"),
    "nothing named": (HELLO + line(e="point", path="a", call=0, role="output", k="0"), "not the value sent before it"),
    "type": (HELLO + line(e="value", k=0, d="float32", s=[1], n=4) + bytes(4), "in another type"),
    "nothing": (b"", "no tensor arrived"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_bytes_are_one_line(watch, name):
    data, says = BAD[name]
    w = watch()
    w.send(data)
    status, _, err = w.end()
    assert status == 2 and says in err and w.address.removeprefix("parity://") in err and err.count("\n") == 1, err


def test_nobody_listens(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as s:
        address = "parity://127.0.0.1:%d" % s.getsockname()[1]
    with pytest.raises(parity_probe.Error, match=f"{address}: nothing listens there .*start parity-check watch REF first"):
        parity_probe.Writer(address)
    for bad in ("parity://", "parity://here", "parity://here:", "parity://:80", "parity://here:99999"):
        with pytest.raises(parity_probe.Error, match="give parity://HOST:PORT"):
            parity_probe.Writer(bad)


def test_a_watch_that_is_gone_ends_the_writer(watch):
    w = watch()
    writer = parity_probe.Writer(w.address)
    writer.write("a", torch.zeros(3))
    w.process.kill()
    w.process.wait()
    with pytest.raises(parity_probe.Error, match="parity-check watch"):
        for _ in range(3):
            writer.write("a", torch.zeros(3))
    with pytest.raises(parity_probe.Error, match="parity-check watch"):
        writer.write("a", torch.zeros(3))


def test_bad_arguments(reference, tmp_path):
    taken = socket.create_server(("127.0.0.1", 0))
    for listen, says in (("here", "give HOST:PORT"), ("127.0.0.1:99999", "give HOST:PORT"), ("127.0.0.1:%d" % taken.getsockname()[1], "cannot listen there")):
        done = program.run("watch", reference, "--listen", listen, timeout=SECONDS)
        assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1, done.stderr
    with pytest.raises(ValueError, match="cannot be streamed"):
        parity_probe.Writer("parity://127.0.0.1:7077", level="sketch")
