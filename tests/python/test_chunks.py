"""Ports that run a prompt in chunks on a cache, as engines do, or a batch in several calls; the reference runs it at once."""
import diffusers
import nameless
import parity_probe
import pytest
import torch
import transformers
from spread_models import IDS, gpt2, record, spread

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


# Guidance in two calls, or a loop over the batch: each model's own modules and ops, some called several times (an activation that all blocks share).
def wan():
    return spread(diffusers.WanTransformer3DModel(patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=24, in_channels=4, out_channels=4, text_dim=32,
                                                  freq_dim=32, ffn_dim=96, num_layers=2, cross_attn_norm=True, rope_max_seq_len=64))


def vae():
    return spread(diffusers.AutoencoderKL(in_channels=3, out_channels=3, down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
                                          block_out_channels=(32, 64), latent_channels=4, norm_num_groups=8, sample_size=32)).decoder


def umt5():
    return spread(transformers.UMT5EncoderModel(transformers.UMT5Config(vocab_size=97, d_model=48, d_kv=12, d_ff=80, num_layers=2, num_heads=4)))


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


SAMPLES = {"Wan": (wan, (noise(3, 4, 3, 6, 8), torch.tensor([700, 700, 700]), noise(3, 11, 32))), "VAE": (vae, (noise(3, 4, 9, 11),)),
           "UMT5": (umt5, (torch.arange(72).view(3, 24) % 97, torch.tensor([[1] * n + [0] * (24 - n) for n in (9, 15, 24)])))}


def sample_by_sample(model, inputs, file, calls=(1, 1, 1), before=None):
    with torch.no_grad(), parity_probe.record(model, file):
        for call, samples in enumerate(zip(*(i.split(calls) for i in inputs))):
            if before:
                before(model, call)
            model(*samples)
    return file


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("calls", [(1, 1, 1), (2, 1)])
def test_a_batch_in_several_calls_is_joined(calls, name, dtype, tmp_path):
    make, inputs = SAMPLES[name]
    model, inputs = make().to(dtype), [i.to(dtype) if i.is_floating_point() else i for i in inputs]
    reference, port = sample_by_sample(model, inputs, tmp_path / "ref.h5", calls=(3,)), sample_by_sample(model, inputs, tmp_path / "port.h5", calls)
    report, rows = nameless.compare(reference, port, tmp_path / "report")
    assert report["verdict"] == "pass", [op for op in report["ops"] if op["verdict"] != "pass"][:3]
    assert any(f"the port ran in {len(calls)} chunks" in warning for warning in report["warnings"]), report["warnings"]
    assert report["counts"]["pass"] > 80


def test_a_fault_of_the_second_sample_alone(tmp_path):
    model, inputs = wan(), SAMPLES["Wan"][1]
    reference = sample_by_sample(model, inputs, tmp_path / "ref.h5", calls=(3,))

    def scaled(model, call):
        model.blocks[1].attn2.to_v.weight.mul_({1: 1.01, 2: 1 / 1.01}.get(call, 1))

    report, _ = nameless.compare(reference, sample_by_sample(model, inputs, tmp_path / "port.h5", before=scaled), tmp_path / "report")
    assert report["first_divergence"]["path"].startswith("blocks.1.attn2.to_v"), report["first_divergence"]
    first = next(op for op in report["ops"] if op["path"] == report["first_divergence"]["path"])
    assert first["forced"]["worst_index"][0] // (first["shape"][0] // 3) == 1
