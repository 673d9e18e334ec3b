"""Real diffusers and transformers models, recorded at both levels and replayed bit by bit; the recorded run itself must equal the plain one."""
import pytest
import torch

from test_recorder_replay import one_thread, parity_probe, replay, same  # noqa: F401

LEVELS = pytest.mark.parametrize("level", ["op", "module"])


def flat_tensors(x):
    if isinstance(x, torch.Tensor):
        return [x]
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else []
    return [t for y in items for t in flat_tensors(y)]


def both(model, run, path, level):
    """Runs plain and recorded, demands equal bits, replays. `run` starts from the same random state both times."""
    torch.manual_seed(1)
    plain = flat_tensors(run())
    torch.manual_seed(1)
    with parity_probe.record(model, path, level=level):
        recorded = flat_tensors(run())
    assert len(plain) == len(recorded) > 0 and all(same(a, b) for a, b in zip(plain, recorded))
    return replay(path)


def gpt2(**changes):
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(**{**dict(n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=64, bos_token_id=1, eos_token_id=63), **changes})).eval()


@LEVELS
@pytest.mark.parametrize("inference", [False, True])
def test_gpt2_generates_with_a_cache(tmp_path, level, inference):
    model = gpt2()
    ids = torch.randint(2, 60, (1, 5))
    with torch.inference_mode(inference):
        r = both(model, lambda: model.generate(ids, max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0), tmp_path / "a.h5", level)
    assert sum(e["e"] == "call" and e["path"] == "" for e in r.events) == 4
    assert list(r.file["inputs"]) == ["0", "1", "2", "3"] and "0" in r.file["outputs"] and "logits" in r.file["outputs/3"]
    tied = [e["names"] for e in r.events if e["e"] == "leaf" and "weights/lm_head.weight" in e["names"]]
    assert tied == [["weights/transformer.wte.weight", "weights/lm_head.weight"]]
    assert r.file["weights/lm_head.weight"] == r.file["weights/transformer.wte.weight"]


@LEVELS
def test_gpt2_samples(tmp_path, level):
    model = gpt2()
    r = both(model, lambda: model.generate(torch.tensor([[5, 6]]), max_new_tokens=3, do_sample=True, pad_token_id=0), tmp_path / "a.h5", level)
    assert any(e.get("opaque") == "random" and e["op"].startswith("aten::multinomial") for e in r.events)


@LEVELS
def test_gpt2_with_static_cache_writes_in_place(tmp_path, level):
    model = gpt2()
    r = both(model, lambda: model.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=3, do_sample=False, pad_token_id=0, cache_implementation="static",
                                           disable_compile=True), tmp_path / "a.h5", level)
    assert any(e["e"] == "op" and e["op"].startswith("aten::index_copy_") for e in r.events)


@LEVELS
def test_gpt2_training_forward(tmp_path, level):
    model = gpt2().train()  # dropout draws: its results are taken from the file
    ids = torch.randint(2, 60, (2, 6))
    r = both(model, lambda: model(ids, labels=ids), tmp_path / "a.h5", level)
    assert any(e.get("opaque") == "random" for e in r.events)


@LEVELS
def test_umt5(tmp_path, level):
    from transformers import UMT5Config, UMT5EncoderModel
    torch.manual_seed(0)
    model = UMT5EncoderModel(UMT5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)).eval()
    ids, mask = torch.randint(0, 50, (2, 7)), torch.tensor([[1] * 7, [1] * 4 + [0] * 3])
    with torch.no_grad():
        both(model, lambda: model(input_ids=ids, attention_mask=mask), tmp_path / "a.h5", level)


@LEVELS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gpt_oss(tmp_path, level, dtype):
    from transformers import GptOssConfig, GptOssForCausalLM
    torch.manual_seed(0)
    config = GptOssConfig(num_hidden_layers=2, num_local_experts=4, num_experts_per_tok=2, vocab_size=64, hidden_size=32, intermediate_size=32, head_dim=16,
                          num_attention_heads=4, num_key_value_heads=2, sliding_window=4, pad_token_id=0, eos_token_id=63,
                          rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    model = GptOssForCausalLM(config).to(dtype).eval()
    with torch.no_grad():
        both(model, lambda: model.generate(torch.randint(1, 60, (1, 6)), max_new_tokens=2, min_new_tokens=2, do_sample=False), tmp_path / "a.h5", level)


@LEVELS
def test_wan_vae_edits_in_place_and_caches(tmp_path, level):
    from diffusers import AutoencoderKLWan
    torch.manual_seed(0)
    vae = AutoencoderKLWan(base_dim=8, z_dim=4, dim_mult=[1, 1], num_res_blocks=1, attn_scales=[], temperal_downsample=[True]).eval()
    video = torch.randn(1, 3, 5, 8, 8)
    with torch.no_grad():
        r = both(vae, lambda: vae.decode(vae.encode(video).latent_dist.mode()).sample.clamp_(-1, 1), tmp_path / "b.h5", level)
    assert any(e["e"] == "op" and e["op"] == "aten::clamp_" for e in r.events)


@LEVELS
@pytest.mark.parametrize("inference", [False, True])
def test_autocast(tmp_path, level, inference):
    from test_recorder_replay import tiny_wan
    model, inputs = tiny_wan()
    with torch.inference_mode(inference), torch.autocast("cpu", torch.bfloat16):
        r = both(model, lambda: model(**inputs).sample, tmp_path / "a.h5", level)
    assert {e["autocast"] for e in r.events if e["e"] == "call"} == {"bfloat16"}


def test_inference_mode_records_the_same_program(tmp_path):
    from test_recorder_replay import tiny_wan
    model, inputs = tiny_wan()
    names = []
    for i, mode in enumerate((torch.no_grad, torch.inference_mode, torch.enable_grad)):
        with mode(), parity_probe.record(model, tmp_path / f"{i}.h5"):
            model(**inputs)
        names.append([e["op"] for e in replay(tmp_path / f"{i}.h5").events if e["e"] == "op" and e["op"] not in ("aten::detach", "aten::alias")])
    assert names[0] == names[1] == names[2]
