"""How tensors.pt, tensors.npz (one entry stored, one deflated) and tensors.npy were made: numpy 2, torch 2.13.  python tests/data/tensor_sets.py"""
import io
import pathlib
import zipfile

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).parent
a = torch.arange(12, dtype=torch.float32).view(3, 4) / 8
norm = torch.nn.BatchNorm1d(2)
torch.save({"model": norm.state_dict(), "a.t": a.t(), "half": a[0].bfloat16(), "steps": [3, torch.ones(2, dtype=torch.bool)]}, FOLDER / "tensors.pt")
np.save(FOLDER / "tensors.npy", np.asfortranarray(a.numpy()))
with zipfile.ZipFile(FOLDER / "tensors.npz", "w") as archive:
    for name, array, how in (("stored", a.numpy(), zipfile.ZIP_STORED), ("deflated", np.zeros((40, 50), np.int16), zipfile.ZIP_DEFLATED)):
        data = io.BytesIO()
        np.save(data, array)
        archive.writestr(zipfile.ZipInfo(f"{name}.npy"), data.getvalue(), compress_type=how)
