"""What the tests of killed recordings share: recordings made by other processes and killed at a given moment, and the questions put to what they leave behind.

The oracle is the same recording run to its end: what a killed one holds must be its beginning, event by event and bit by bit.
"""
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import h5py
import program

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENV = {**os.environ, "PYTHONPATH": f"{ROOT / 'probes/python'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}", "OMP_NUM_THREADS": "1"}


class Forked:
    """One process that has imported everything and forks a recording for each call (an import takes longer than recording)."""

    def __init__(self, kind):
        command = [sys.executable, str(pathlib.Path(__file__).with_name("killed_recordings.py")), kind]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV)

    def __call__(self, path, seconds=None, change=""):
        """Records to `path` and kills it after `seconds` (None: never), or before it makes its change number `change` to what a reader may already see.
        -> (event lines that had reached the file for sure, seconds it lived)."""
        self._server.stdin.write(f"{path} {change}\n")
        self._server.stdin.flush()
        pid = int(self._server.stdout.readline())
        return watched(self._server.stdout, pid, seconds)

    def close(self):
        self._server.stdin.close()
        self._server.wait(60)


class Started:
    """A program started anew for each recording: `command` and the file."""

    def __init__(self, command):
        self._command = command

    def __call__(self, path, seconds=None, change=""):
        env = {**os.environ, "PORT_CHANGES": str(change)} if change != "" else None
        child = subprocess.Popen([*self._command, str(path)], stdout=subprocess.PIPE, text=True, env=env)
        try:
            return watched(child.stdout, child.pid, seconds)
        finally:
            child.wait()

    def close(self):
        pass


def watched(lines, pid, seconds):
    """Reads what the recording says until it ends ("gone", or its pipe closed), and kills it on the way."""
    begun, flushed = time.monotonic(), 0
    timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL)) if seconds is not None else None
    if timer:
        timer.start()
    for line in iter(lines.readline, ""):
        if line == "gone\n":
            break
        flushed = int(line)
    if timer:
        timer.cancel()
        timer.join()
    return flushed, time.monotonic() - begun


def load(path):
    """(event lines, {key: bytes of the value}, complete) of a file, as FORMAT.md tells a reader to take an interrupted one."""
    with h5py.File(path, "r") as f:
        text, complete = f["trace/events"][()].tobytes(), int(f.attrs["complete"])
        text = text.split(b"\0")[0]
        lines = text[:text.rfind(b"\n") + 1].splitlines()
        return lines, {k: f["values"][k][()].tobytes() for line in lines for k in _keys(json.loads(line))}, complete


def _keys(x):
    if isinstance(x, dict):
        if isinstance(x.get("k"), str):
            yield x["k"]
        x = x.values()
    if not isinstance(x, (str, int, float, type(None))):
        for inner in x:
            yield from _keys(inner)


def ask(*arguments):
    """(exit status, stdout, stderr) of parity-check; a hang ends the test."""
    done = program.run(*arguments, timeout=120)
    return done.returncode, done.stdout, done.stderr


class Judge:
    """Looks at each file a killed recording left; counts what was found (`found`), and keeps what is wrong (`wrong`)."""

    def __init__(self, whole):
        self.whole, (self.lines, self.values, complete) = whole, load(whole)
        assert complete == 1 and len(self.lines) > 100
        self.found, self.wrong = collections.Counter(), []

    def __call__(self, path, flushed, ask=True):
        """`flushed`: event lines that had reached the file for sure; `ask`: parity-check, too."""
        if not path.exists():  # killed before the file got its name
            self._expect(path, flushed == 0, f"{flushed} lines were flushed, and there is no file")
            self.found["no file yet"] += 1
            return
        try:
            lines, values, complete = load(path)
        except (OSError, KeyError, RuntimeError):
            self.found["torn"] += 1
            return self._refused(path)
        self.found["complete" if complete else "nothing flushed yet" if not lines else "part"] += 1
        self._expect(path, lines == self.lines[:len(lines)] and all(self.values[k] == x for k, x in values.items()), "holds what was never recorded")
        self._expect(path, not complete or lines == self.lines, f"calls itself complete with {len(lines)} of {len(self.lines)} lines")
        self._expect(path, len(lines) >= flushed, f"{len(lines)} lines, {flushed} were flushed")
        if ask:
            whole = values.keys() == self.values.keys() and all(b'"e":"ret"' in line for line in self.lines[len(lines):])
            self._read(path, complete, lines, whole)

    def _read(self, path, complete, lines, whole):
        """`whole`: nothing is left out, or the last modules' results alone, whose values are those of their last op's."""
        if sum(self.found.values()) % 4 == 0:  # --verify prints the same and more
            status, out, err = ask("inspect", path)
            self._expect(path, status == 0 and ("INTERRUPTED" in out) == (not complete), f"inspect: {status}: {(out + err)[:300]}")
        status, out, err = ask("inspect", "--verify", path)
        problems = [line for line in err.splitlines() if not line.startswith("note:")]
        good = (status, problems) == (0, []) if complete else status == 1 and len(problems) == 1 and "is incomplete" in problems[0]
        self._expect(path, good and ("INTERRUPTED" in out) == (not complete), f"inspect --verify: {status}: {err[:300]}")
        status, out, err = ask("compare", self.whole, path)
        if not any(word in line for line in lines for word in (b'"role":"output"', b'"e":"op"', b'"e":"ret"')):  # refused, like any file without tensors
            return self._expect(path, status == 2 and err.count("\n") == 1 and f"{path}: holds no tensor" in err, f"compare: {status}: {err[:600]}")
        told = f"{path}: the recording was interrupted; only what it holds is compared" in out + err
        self._expect(path, status == (0 if whole else 3) and told == (not complete), f"compare: {status}: {(out + err)[:600]}")

    def _refused(self, path):
        for command in (["inspect"], ["inspect", "--verify"], ["compare", self.whole]):
            status, out, err = ask(*command, path)
            self._expect(path, status in (1, 2) and err.count("\n") == 1 and str(path) in err, f"{command}: {status}: {err[:600]}")

    def _expect(self, path, good, what):
        if not good:
            self.wrong.append(f"{path.name}: {what}")


def kill_at_random_moments(record, folder, kills, seed, parts=8):
    """Records once to the end, then `kills` times with a kill at a random moment of that time (a little beyond its end, so that closing is met, too);
    and goes on, at most to four times as many, until `parts` files hold a part of the recording. -> Judge. Two cores: while one file is looked at, the
    next is recorded."""
    try:
        record(folder / "warm.h5")
        seconds = min(record(folder / "whole.h5")[1] for _ in range(3))
        judge, moments = Judge(folder / "whole.h5"), random.Random(seed)
        with ThreadPoolExecutor(2) as judges:
            waiting = []
            while len(waiting) < kills or judge.found["part"] < parts and len(waiting) < 4 * kills:
                path = folder / f"{len(waiting)}.h5"
                flushed, _ = record(path, moments.uniform(0, 1.05) * seconds)
                waiting.append(judges.submit(judge, path, flushed))
            for result in waiting:
                result.result()
    finally:
        record.close()
    print(f"{len(waiting)} kills in {seconds:.2f} s: {dict(judge.found)}")
    return judge


def kill_before_each_change(record, folder, last, judged):
    """Dies before the first, second, ... `last` change to what a reader may already see. Each file is read; parity-check is asked about `judged` of them.
    -> Judge."""
    try:
        record(folder / "whole.h5")
        judge, ask_about = Judge(folder / "whole.h5"), set(random.Random(1).sample(range(last), judged))
        for change in range(last):
            path = folder / f"{change}.h5"
            judge(path, record(path, change=change)[0], ask=change in ask_about)
            path.unlink()
    finally:
        record.close()
    print(f"{last} changes: {dict(judge.found)}")
    return judge
