"""Tensors that numpy, torch and safetensors saved, read back by `parity-check inspect --verify`: names, dtypes, shapes and every bit; hostile files are one line."""
import hashlib
import io
import json
import os
import pathlib
import pickle
import struct
import zipfile

import ml_dtypes
import numpy as np
import pytest
import safetensors.torch
import torch
import program

ROOT = pathlib.Path(__file__).resolve().parents[2]
DTYPES = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool",
          "complex64", "complex128"]


def random_tensor(name, *shape):
    dtype = getattr(torch, name)
    if name == "bool":
        return torch.rand(shape) > 0.5
    return torch.randint(0, 256, (*shape, dtype.itemsize), dtype=torch.uint8).view(dtype).reshape(shape)


def raw(t):
    """A torch tensor's or numpy array's elements in row-major order, as bytes."""
    return t.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if torch.is_tensor(t) else np.ascontiguousarray(t).tobytes()


def inspect(path, *more):
    out = str(path).rstrip("/") + ".report"
    done = program.run("inspect", "--verify", "--json", out, *more, path)
    assert done.returncode == 0, done.stderr
    return json.loads(pathlib.Path(out).read_text())


def check(path, wanted, **more):
    """The file holds exactly these tensors ({name: tensor or array}), bit for bit."""
    found = inspect(path)
    described = {t["name"]: (t["dtype"], t["shape"], t["bytes"], t["sha256"]) for t in found["tensors"]}
    assert described == {name: (str(t.dtype).removeprefix("torch."), list(t.shape), len(raw(t)), hashlib.sha256(raw(t)).hexdigest()) for name, t in wanted.items()}
    return found


def refused(path, words):
    done = program.run("inspect", "--verify", path)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert words in done.stderr and len(done.stderr.splitlines()) == 1 and str(path) in done.stderr, done.stderr


# --- what the libraries write ------------------------------------------------------------------------------------------
def all_dtypes(leave_out=()):
    tensors = {name: random_tensor(name, 3, 5) for name in DTYPES if name not in leave_out}
    return {**tensors, "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 4), "deep": torch.rand(2, 1, 3, 1, 2)}


def test_torch_save(tmp_path):
    tensors = all_dtypes()
    torch.save(tensors, tmp_path / "a.pt")
    check(tmp_path / "a.pt", tensors)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_torch_save_of_a_training_state(tmp_path, protocol):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 7, "seed": 2**70, "name": "x"}, tmp_path / "a.ckpt", pickle_protocol=protocol)
    wanted = {f"model.{k}": v for k, v in model.state_dict().items()}
    wanted |= {f"optimizer.state.{i}.{k}": v for i, state in optimizer.state_dict()["state"].items() for k, v in state.items()}
    assert any("left out" in note for note in check(tmp_path / "a.ckpt", wanted)["notes"])


def test_torch_save_of_views_parameters_and_shared_storages(tmp_path):
    base = torch.randn(6, 7)
    tensors = {"base": base, "part": base[1:3, ::2], "turned": base.t(), "wide": base[0].expand(4, 7), "same": base, "parameter": torch.nn.Parameter(torch.ones(2))}
    torch.save(tensors, tmp_path / "a.pth")
    check(tmp_path / "a.pth", {k: v.detach() for k, v in tensors.items()})
    torch.save(base, tmp_path / "b.pt")
    check(tmp_path / "b.pt", {"tensor": base})


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, save):
    arrays = {k: v.numpy() for k, v in all_dtypes(leave_out=("bfloat16", "float8_e4m3fn", "float8_e5m2")).items()}
    arrays["turned"] = np.asfortranarray(np.random.rand(3, 4, 5))
    save(tmp_path / "a.npz", **arrays)
    check(tmp_path / "a.npz", arrays)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions_and_orders(tmp_path, version):
    for number, array in enumerate((np.random.rand(3, 4, 5), np.asfortranarray(np.random.rand(3, 4, 5).astype("f2")), np.array(3, "i4"), np.zeros((0, 2)), np.random.rand(4)[::2])):
        with open(tmp_path / f"{number}.npy", "wb") as file:
            np.lib.format.write_array(file, array, version=version)
        check(tmp_path / f"{number}.npy", {str(number): array})


def test_npy_of_ml_dtypes_bfloat16_is_bfloat16_and_says_so(tmp_path):
    array = np.random.rand(3, 4).astype(ml_dtypes.bfloat16)
    for name, header in (("new", b"<V2"), ("old", b"|V2")):  # what ml_dtypes' dtype said before 0.5
        data = io.BytesIO()
        np.save(data, array)
        (tmp_path / f"{name}.npy").write_bytes(data.getvalue().replace(b"<V2", header))
        assert any("bfloat16" in note for note in check(tmp_path / f"{name}.npy", {name: array})["notes"])
    for dtype in (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, ml_dtypes.int4):
        np.save(tmp_path / "f8.npy", array.astype(dtype))
        refused(tmp_path / "f8.npy", "1-byte")


def test_safetensors_one_file_and_shards(tmp_path):
    tensors = {k: v for k, v in all_dtypes(leave_out=("complex128",)).items()}
    safetensors.torch.save_file(tensors, tmp_path / "a.safetensors")
    check(tmp_path / "a.safetensors", tensors)
    folder = tmp_path / "sharded"
    folder.mkdir()
    halves = {"one.safetensors": dict(list(tensors.items())[:8]), "two.safetensors": dict(list(tensors.items())[8:])}
    for file, part in halves.items():
        safetensors.torch.save_file(part, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {k: file for file, part in halves.items() for k in part}}))
    check(folder, tensors)
    check(folder / "model.safetensors.index.json", tensors)


def test_a_folder_of_arrays(tmp_path):
    folder = tmp_path / "run"
    (folder / "step1").mkdir(parents=True)
    arrays = {"blocks.0.norm1": np.random.rand(3), "step1/x": np.random.rand(2, 2)}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "more.npz", y=np.arange(3))
    torch.save({"z": torch.ones(2)}, folder / "step1" / "model.pt")
    (folder / "README").write_text("x")
    found = check(folder, {**arrays, "more.y": np.arange(3), "step1/model.z": torch.ones(2)})
    assert found["notes"] == ["left out, being of other formats: 1 files"]


def test_non_finite_elements_are_noted_and_layers_chosen(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([1, np.nan, np.inf, -np.inf]), y=np.ones(2))
    assert inspect(tmp_path / "a.npz")["notes"] == ["'x': 1 NaN, 2 infinite"]
    assert [t["name"] for t in inspect(tmp_path / "a.npz", "--layer", "y")["tensors"]] == ["y"]


# --- hostile files -----------------------------------------------------------------------------------------------------
class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/parity-check-was-fooled",)


class Own:
    pass


@pytest.mark.parametrize("what, words", [
    ({"a": Evil()}, "refers to 'posix.system'"), (Own(), "refers to '__main__.Own'"), (torch.nn.Linear(2, 2), "refers to 'torch.nn.modules.linear.Linear'"),
    ({"a": np.float64(3)}, "refers to 'numpy"), ({}, "holds no tensor"), ({"x": 3}, "holds no tensor"), ({(1, 2): torch.ones(1)}, "keys are neither"),
    ({"a": {"b": torch.ones(1)}, "a.b": torch.ones(1)}, "two tensors are called 'a.b'"), ({"a\nb": torch.ones(1)}, "not printable text"),
    ({"a": torch.ones(2, 2).to_sparse()}, "refers to 'torch._utils._rebuild_sparse_tensor'"), ({"a": {1, 2}}, "refers to"),
    (torch.ones(1).expand(1 << 20), "does not lie in its storage")])
def test_what_torch_saves_beyond_a_state_dict(tmp_path, what, words, monkeypatch):
    monkeypatch.setattr(Own, "__module__", "__main__")
    import __main__
    monkeypatch.setattr(__main__, "Own", Own, raising=False)
    torch.save(what, tmp_path / "a.pt")
    refused(tmp_path / "a.pt", words)
    assert not os.path.exists("/tmp/parity-check-was-fooled")


def test_torch_formats_that_are_not_read(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    refused(tmp_path / "old.pt", "before 1.6")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps({"a": 1}))
    refused(tmp_path / "plain.pt", "plain pickle")
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(2, 2)).save(tmp_path / "script.pt")
    refused(tmp_path / "script.pt", "TorchScript")


def rezip(path, change):
    """Writes the archive at `path` anew with its entries ({name: bytes}) changed."""
    with zipfile.ZipFile(path) as archive:
        entries = {i.filename: archive.read(i) for i in archive.infolist()}
    change(entries)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)


@pytest.mark.parametrize("change, words", [
    (lambda e: e.pop("a/data/0"), "its storage '0' is missing"), (lambda e: e.update({"a/data/0": b"x"}), "its storage '0' has 1 bytes, the pickle says 8"),
    (lambda e: e.update({"a/byteorder": b"big"}), "big-endian"), (lambda e: e.pop("a/data.pkl"), "no data.pkl"), (lambda e: e.update({"b/data.pkl": b"x"}), "more than one data.pkl"),
    (lambda e: e.update({"a/data.pkl": e["a/data.pkl"].replace(b"X\x01\x00\x00\x000", b"X\x0b\x00\x00\x00../../etc/x")}), "storage '../../etc/x' is missing")])
def test_torch_archives_that_do_not_fit_together(tmp_path, change, words):
    torch.save({"x": torch.ones(2)}, tmp_path / "a.pt")
    rezip(tmp_path / "a.pt", change)
    refused(tmp_path / "a.pt", words)


def npy(descr="'<f4'", order="False", shape="(2,)", data=b"\0" * 8, header=None, version=b"\x01\x00"):
    header = (header or f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}").encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header + data


HOSTILE_NPY = [
    (npy(), None), (npy("'>f4'"), "is big-endian"), (npy("'|O'"), "holds Python objects"), (npy("'<U4'"), "NumPy type '<U4'"), (npy("[('a', '<f4')]"), "array of records"),
    (npy("'<f16'"), "'<f16'"), (npy("'<M8[ns]'"), "cannot be read"), (npy("''"), "NumPy type ''"), (npy(order="Maybe"), "fortran_order"), (npy(shape="(-2,)"), "is not a shape"),
    (npy(shape="(2.5,)"), "is not a shape"), (npy(shape="(3,)"), "makes 12 bytes of data, 8 are there: the file is truncated"), (npy(shape="(1,)"), "several arrays"),
    (npy(shape="(4611686018427387904, 4)"), "impossible shape"), (npy(shape="(9223372036854775807,)"), "impossible shape"),
    (npy(shape="(0, 9223372036854775807, 9223372036854775807)", data=b""), "impossible shape"), (npy(shape="(99999999999999999999,)"), "is not a shape"),
    (npy(shape="(" + "1," * 70 + "2)"), "impossible shape"), (npy(version=b"\x09\x00"), "version 9"), (npy(header="{'descr': '<f4'}"), "lacks 'fortran_order'"),
    (npy(header="__import__('os')"), "cannot be understood"), (npy(header="{'descr': '<f4"), "cannot be understood"), (npy("'|b1'", data=b"\1\7"), "other than 0 and 1"),
    (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 100, "a header of 4294967295 bytes"), (b"\x93NUMPY", "is not a NumPy array file"), (b"", "is empty"), (b"hello, numpy!!", "is not a NumPy")]


@pytest.mark.parametrize("number", range(len(HOSTILE_NPY)))
def test_npy_files_and_entries_that_cannot_be(tmp_path, number):
    data, words = HOSTILE_NPY[number]
    (tmp_path / "a.npy").write_bytes(data)
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("a.npy", data)
    if words is None:
        check(tmp_path / "a.npy", {"a": np.zeros(2, "f4")})
        check(tmp_path / "b.npz", {"a": np.zeros(2, "f4")})
    else:
        refused(tmp_path / "a.npy", words)
        refused(tmp_path / "b.npz", "is not a NumPy array file" if words == "is empty" else words)


def test_archives_that_cannot_be(tmp_path):
    path = tmp_path / "a.npz"
    def write(*entries, how=zipfile.ZIP_STORED):
        import warnings
        with warnings.catch_warnings(), zipfile.ZipFile(path, "w", how) as archive:
            warnings.simplefilter("ignore")
            for name, data in entries:
                archive.writestr(name, data)
        return bytearray(path.read_bytes())
    write(("a.npy", npy()), ("a.npy", npy()))
    refused(path, "entry 'a.npy' is there twice")
    write(("a.txt", b"x"))
    refused(path, "is not an .npy array")
    write(("a.npy", npy()), how=zipfile.ZIP_BZIP2)
    refused(path, "compressed by method 12")
    write()
    refused(path, "holds no tensor")
    path.write_bytes(b"PK\x03\x04 and no more")
    refused(path, "is not a zip archive")
    # a bomb: 1 GB of zeros in 1 MB is a legitimate array, more than deflate can do is not
    data = write(("a.npy", npy(shape="(250,)", data=b"\0" * 1000)), how=zipfile.ZIP_DEFLATED)
    where = data.rindex(b"PK\x01\x02")
    data[where + 24:where + 28] = struct.pack("<I", 0xfffffff0)
    path.write_bytes(data)
    refused(path, "declares 4294967280 bytes")
    data = write(("a.npy", npy()))
    where = data.rindex(b"PK\x01\x02")
    data[where + 8] |= 1  # encrypted
    path.write_bytes(data)
    refused(path, "is encrypted")
    data = write(("a.npy", npy()))
    data[data.index(b"\n\0\0") + 3] ^= 1  # an element
    path.write_bytes(data)
    refused(path, "is damaged")


def test_names_that_lead_elsewhere_are_only_names(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("../../../tmp/parity-check-was-fooled.npy", npy())
    check(tmp_path / "a.npz", {"../../../tmp/parity-check-was-fooled": np.zeros(2, "f4")})
    assert not os.path.exists("/tmp/parity-check-was-fooled.npy")


def test_places_that_hold_no_tensors(tmp_path):
    refused(tmp_path, "holds no tensor")
    (tmp_path / "a.safetensors").mkdir()
    refused(tmp_path / "a.safetensors", "holds no tensor")
    os.mkfifo(tmp_path / "b.npz")
    refused(tmp_path / "b.npz", "is not a regular file")
    os.mkfifo(tmp_path / "b.npy")
    refused(tmp_path / "b.npy", "is not a regular file")
    (tmp_path / "c.npz").symlink_to("/nonexistent")
    assert program.run("inspect", tmp_path / "c.npz").returncode == 2
    for name in "xy":
        (tmp_path / f"{name}.safetensors.index.json").write_text("{}")
    refused(tmp_path, "2 sharded checkpoints")
