"""The program under test. `run("compare", reference, candidate)` is `parity-check compare …`, ended, with what it printed.

LibTorch takes .2 s of each start, most of a short command, and the tests start two thousand. Here it is loaded once for each process (and thread) of tests, by parity-check-preloaded (tests/
preloaded_program.cpp), and each command runs in a fork of that: the same code from its arguments on. Tests of signals, of memory, of the start itself start BINARY.
"""
import os
import pathlib
import resource
import socket
import struct
import subprocess
import tempfile
import threading

BINARY = os.environ.get("PARITY_CHECK_BINARY", str(pathlib.Path(__file__).resolve().parents[2] / "build/dev/parity-check"))
_LOADED_WITH = ("ATEN_", "GOMP_", "KMP_", "LD_", "MALLOC_", "MKL_", "OMP_", "ONEDNN_", "THP_", "TORCH_")  # settings that are read while libraries are loaded
_WITHOUT_LIBTORCH = ("video", "gate")
_LONGEST = 200_000  # bytes of a message
_ENDED = struct.Struct("qd")  # status as waitpid gives it, cpu_seconds


def run(*arguments, env=None, cwd=None, timeout=None, check=False):
    """CompletedProcess with text, as subprocess.run gives it, and `cpu_seconds`, user and system; raises as that does for `timeout` and `check`."""
    arguments = [str(a) for a in arguments]
    environment = os.environ if env is None else env
    server = _Preloaded.of_this_thread()
    if server is None or not arguments or arguments[0] in _WITHOUT_LIBTORCH or _settings(environment) != server.settings:
        before = _of_children()
        done = subprocess.run([BINARY, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, cwd=cwd, timeout=timeout, check=check)
        done.cpu_seconds = _of_children() - before
        return done
    done = server.run(arguments, environment, cwd, timeout)
    if check:
        done.check_returncode()
    return done


def _settings(environment):
    return {name: value for name, value in environment.items() if name.startswith(_LOADED_WITH)}


def _of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Preloaded:
    _here = threading.local()  # one command at a time: every thread has a process of its own

    @classmethod
    def of_this_thread(cls):
        one = getattr(cls._here, "one", None)
        if one is None or one.process.poll() is not None or one.owner != os.getpid():
            program = pathlib.Path(BINARY).with_name("parity-check-preloaded")
            cls._here.one = cls(program) if program.exists() else None
        return cls._here.one

    def __init__(self, program):
        self.owner, self.settings = os.getpid(), _settings(os.environ)
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen([program], stdin=theirs)

    def run(self, arguments, environment, cwd, timeout):
        texts = [os.path.abspath(cwd or "."), str(len(arguments)), *arguments, *(f"{name}={value}" for name, value in environment.items())]
        message = b"".join(os.fsencode(text) + b"\0" for text in texts)
        assert len(message) < _LONGEST, "a command too long for one message"
        with open(os.devnull) as nothing, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            socket.send_fds(self.socket, [message], [nothing.fileno(), out.fileno(), err.fileno()])
            self.socket.settimeout(timeout)
            try:
                answer = self.socket.recv(_ENDED.size)
            except TimeoutError:
                self.process.kill(), self.process.wait()  # and with it the command
                raise subprocess.TimeoutExpired([BINARY, *arguments], timeout) from None
            if len(answer) != _ENDED.size:
                self.process.kill()
                raise RuntimeError(f"parity-check-preloaded gave {len(answer)} bytes for an answer; it ended with {self.process.wait()}")
            out.seek(0), err.seek(0)
            status, cpu_seconds = _ENDED.unpack(answer)
            done = subprocess.CompletedProcess([BINARY, *arguments], os.waitstatus_to_exitcode(status), out.read().decode(), err.read().decode())
            done.cpu_seconds = cpu_seconds
            return done
