"""Ports that run a prompt in chunks on a cache, as engines do; the reference runs it at once."""
import nameless
import parity_probe
import pytest
import torch
from spread_models import IDS, gpt2, record

CHUNKS = {"two chunks": (6, 5), "a prompt, then token by token": (7, 1, 1, 1, 1)}


def run_in_chunks(model, file, chunks, late=0):
    """Real code on a real cache; `late`: the positions of all but the first chunk are off by so many."""
    with torch.no_grad(), parity_probe.record(model, file):
        cache, start = None, 0
        for length in chunks:
            at = torch.arange(start, start + length)[None]
            out = model(input_ids=IDS[:, start:start + length], position_ids=at + (late if start else 0), past_key_values=cache, use_cache=True)
            cache, start = out.past_key_values, start + length
    return file


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_a_prompt_in_chunks_is_joined(chunks, tmp_path):
    reference = record(gpt2(), tmp_path / "reference.h5")
    report, rows = nameless.compare(reference, run_in_chunks(gpt2(), tmp_path / "port.h5", chunks), tmp_path / "report")
    assert report["verdict"] == "pass", [op for op in report["ops"] if op["verdict"] != "pass"][:3]
    assert any(f"the port ran in {len(chunks)} chunks" in warning for warning in report["warnings"]), report["warnings"]
    assert {f"transformer.h.{i}.{part}" for i in range(4) for part in ("attn", "mlp", "ln_1")} <= set(rows)


def test_a_fault_of_the_second_chunk_alone(tmp_path):
    reference = record(gpt2(), tmp_path / "reference.h5")
    report, _ = nameless.compare(reference, run_in_chunks(gpt2(), tmp_path / "port.h5", (6, 5), late=1), tmp_path / "report")
    assert report["first_divergence"]["path"].startswith("transformer.wpe"), report["first_divergence"]
    worst = next(op for op in report["ops"] if op["path"] == report["first_divergence"]["path"])["forced"]["worst_index"]
    assert worst[1] >= 6, worst
