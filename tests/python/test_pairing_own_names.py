"""Ports under names of their own: what little they record is paired whatever is wrong with them, and what they keep in another shape is read as it is meant."""
import diffusers
import nameless
import numpy as np
import pytest
import torch
import transformers
from test_chunks import run_in_chunks
from spread_models import gpt2, record

import parity_probe

IDS = torch.randint(0, 97, (1, 12), generator=torch.Generator().manual_seed(1))
LAYERS = 3


def starcoder():
    torch.manual_seed(0)
    config = transformers.Starcoder2Config(hidden_size=64, intermediate_size=144, num_hidden_layers=LAYERS, num_attention_heads=4, num_key_value_heads=2, vocab_size=97,
                                           max_position_embeddings=64, use_cache=False, initializer_range=.15, bos_token_id=1, eos_token_id=2)
    return transformers.Starcoder2ForCausalLM(config).eval()


def flip_rows(linear):
    linear.weight.data = linear.weight.data.flip(0)


def wrong_everywhere(model):
    """Nothing that the port holds after its embedding is what the reference has."""
    for layer in model.model.layers:
        flip_rows(layer.self_attn.o_proj)


def judged(tmp_path, change, keep, name):
    """starcoder with that fault, of which the port recorded some values under its own names."""
    port = starcoder()
    change(port)
    reference = nameless.record(starcoder(), tmp_path / "reference.h5", {"input_ids": IDS})
    truth = nameless.rewrite(nameless.record(port, tmp_path / "port.h5", {"input_ids": IDS}), tmp_path / "candidate.h5", keep=keep, name=name)
    report, rows = nameless.compare(reference, tmp_path / "candidate.h5", tmp_path / "report")
    return report, truth, rows


def layer_of(path):
    return path.split(".")[2]


def is_layer(path):
    return path.count(".") == 2 and path.startswith("model.layers.")


def test_the_logits_alone_of_a_port_that_is_wrong_from_the_first_layer_on(tmp_path):
    report, _, rows = judged(tmp_path, wrong_everywhere, lambda path: path == "lm_head", lambda *_: "logits")
    assert report["verdict"] == "fail" and rows["logits"]["path"] == "lm_head", report["counts"]


def test_a_second_result_alone_is_wrong(tmp_path):
    """The last token's state is returned, too: the port returns the first one's, and nothing that it recorded is like the reference's."""
    class Pooled(torch.nn.Module):
        def __init__(self, token):
            super().__init__()
            torch.manual_seed(0)
            self.norm, self.head, self.token = torch.nn.LayerNorm(24), torch.nn.Linear(24, 24), token

        def forward(self, x):
            states = self.head(self.norm(x))
            return states, torch.tanh(states)[:, self.token] * 2

    x = torch.randn(2, 5, 24, generator=torch.Generator().manual_seed(1))
    reference = nameless.record(Pooled(-1), tmp_path / "reference.h5", {"x": x})
    with parity_probe.Writer(tmp_path / "candidate.h5") as writer, torch.no_grad():
        for name, value in zip(("states", "pooled"), Pooled(0)(x)):
            writer.write(name, value.numpy())
    report, rows = nameless.compare(reference, tmp_path / "candidate.h5", tmp_path / "report")
    assert report["verdict"] == "fail" and rows["states"]["verdict"] == "pass" and rows["pooled"]["verdict"] == "fail", report["counts"]


def test_two_values_of_each_layer_of_a_port_that_is_wrong_from_the_first_on(tmp_path):
    def name(_, path):
        return "logits" if path == "lm_head" else f"block{layer_of(path)}.{'out' if is_layer(path) else 'attended'}"

    report, truth, rows = judged(tmp_path, wrong_everywhere, lambda path: is_layer(path) or path.endswith("o_proj") or path == "lm_head", name)
    assert report["first_divergence"]["path"].startswith("model.layers.0.self_attn"), report["first_divergence"]
    assert {name: row["path"].split("/")[0] for name, row in rows.items()} == truth


def test_a_list_of_layers_is_paired_by_its_order_where_each_is_wrong(tmp_path):
    report, truth, rows = judged(tmp_path, wrong_everywhere, lambda path: is_layer(path) or path == "lm_head",
                                 lambda _, path: "logits" if path == "lm_head" else f"decoder_{layer_of(path)}")
    assert report["first_divergence"]["path"] == "model.layers.0", report["first_divergence"]
    assert {name: row["path"] for name, row in rows.items()} == truth


def test_a_fault_behind_it_does_not_change_what_a_tensor_is(tmp_path):
    """Keys after their rotation are like what k_proj returns, and equal to what the rotation makes. Batch and tokens are one axis of the port's, heads come before tokens."""
    def port_of(file, recording):
        layer, ready = 0, {}
        with parity_probe.Writer(file) as writer:
            for path, _, array in nameless.boundaries(recording):
                if path.endswith("v_proj"):
                    ready["v"] = np.ascontiguousarray(array.reshape(2, 6, 2, 16).transpose(0, 2, 1, 3))
                if path == "op add" and array.ndim == 4:
                    ready["q" if "q" not in ready else "k"] = array
                if len(ready) == 3:
                    for name in "qkv":
                        writer.write(f"L{layer}.attn.{name}", ready[name])
                    ready = {}
                if path.endswith("post_attention_layernorm") or is_layer(path):
                    writer.write(f"L{layer}.{'out' if is_layer(path) else 'ffn_in'}", array.reshape(12, -1))
                if path == "lm_head":
                    writer.write("logits", array)
                layer += is_layer(path)
        return file

    port = starcoder()
    for layer in (0, 2):
        flip_rows(port.model.layers[layer].mlp.c_proj)
    inputs = {"input_ids": IDS.view(2, 6)}
    reference = nameless.record(starcoder(), tmp_path / "reference.h5", inputs)
    report, rows = nameless.compare(reference, port_of(tmp_path / "candidate.h5", nameless.record(port, tmp_path / "port.h5", inputs)), tmp_path / "report")
    assert [op["path"].split("/")[0] for op in report["ops"] if op["verdict"] == "fail"] == ["model.layers.0", "model.layers.2"], report["first_divergence"]
    assert [rows[f"L{i}.attn.k"]["path"] for i in range(LAYERS)] == [f"model.layers.{i}.self_attn/add.1" for i in range(LAYERS)]


def test_a_map_rule_reads_batch_and_tokens_as_one_axis(tmp_path):
    recording = nameless.record(starcoder(), tmp_path / "reference.h5", {"input_ids": IDS.view(2, 6)})
    truth = nameless.rewrite(recording, tmp_path / "candidate.h5", keep=is_layer, layout=lambda _, array: array.reshape(12, -1))
    (tmp_path / "names.map").write_text("".join(f"{path} = {name}\n" for name, path in truth.items()))
    report, rows = nameless.compare(recording, tmp_path / "candidate.h5", tmp_path / "report", "--map", str(tmp_path / "names.map"))
    assert [row["verdict"] for row in rows.values()] == ["pass"] * LAYERS, report["first_divergence"]
    nameless.rewrite(recording, tmp_path / "same_names.h5", keep=is_layer, layout=lambda _, array: array.reshape(12, -1), name=lambda _, path: path)
    report, rows = nameless.compare(recording, tmp_path / "same_names.h5", tmp_path / "report")
    assert {row["verdict"] for row in rows.values()} == {"shape"}  # of equal names nothing was said: the row says which rule would
    assert "model.layers.0 = model.layers.0 reshape(2,6,64)" in rows["model.layers.0"]["diagnosis"]


def test_bf16_numbers_written_as_fp32_are_an_ops_result_too(tmp_path, monkeypatch):
    """A rotation that is not rounded between its steps: seen where the rotated queries and keys are."""
    from transformers.models.starcoder2 import modeling_starcoder2 as code

    def rotated_in_fp32(q, k, cos, sin, unsqueeze_dim=1):
        turned = [(x.float() * cos.float().unsqueeze(unsqueeze_dim) + code.rotate_half(x.float()) * sin.float().unsqueeze(unsqueeze_dim)).to(x.dtype) for x in (q, k)]
        for name, x in zip("qk", turned):
            writer.write(f"rotated.{name}{layer[0]}", x.float().numpy())
        layer[0] += 1
        return turned

    reference = nameless.record(starcoder().to(torch.bfloat16), tmp_path / "reference.h5", {"input_ids": IDS})
    layer = [0]
    with parity_probe.Writer(tmp_path / "candidate.h5") as writer, torch.no_grad():
        monkeypatch.setattr(code, "apply_rotary_pos_emb", rotated_in_fp32)
        port = starcoder().to(torch.bfloat16)
        for i, block in enumerate(port.model.layers):
            block.self_attn.v_proj.register_forward_hook(lambda _, inputs, out, i=i: [writer.write(f"values.{i}", out.float().numpy()), out][1])
        writer.write("logits", port(input_ids=IDS).logits.float().numpy())
    report, rows = nameless.compare(reference, tmp_path / "candidate.h5", tmp_path / "report")
    assert report["verdict"] == "fail" and {op["gate"] for op in report["ops"] if op["verdict"] == "fail"} == {"dtype_path"}, report["counts"]
    assert rows["rotated.k0"]["path"].startswith("model.layers.0.self_attn/"), sorted(rows)


@pytest.mark.parametrize("chunks", [(6, 5), (9, 1, 1)], ids=["two chunks", "a prompt, then token by token"])
def test_chunks_under_own_names_are_joined(chunks, tmp_path):
    reference = record(gpt2(), tmp_path / "reference.h5")
    nameless.rewrite(run_in_chunks(gpt2(), tmp_path / "port.h5", chunks), tmp_path / "candidate.h5", name=lambda _, path: "port_" + path.replace(".", "_"),
                     keep=lambda path: path.endswith(("c_attn", "c_fc", "lm_head")))
    report, rows = nameless.compare(reference, tmp_path / "candidate.h5", tmp_path / "report")
    assert report["verdict"] == "pass", report["first_divergence"]
    assert rows["port_transformer_h_3_mlp_c_fc"]["path"] == "transformer.h.3.mlp.c_fc" and len(rows) == 9, sorted(rows)


def test_a_reference_that_generates_has_the_last_tokens_logits(tmp_path):
    with torch.no_grad(), parity_probe.record(model := gpt2(), tmp_path / "reference.h5"):
        model(input_ids=IDS[:, :11], use_cache=False, logits_to_keep=1)
    candidate = nameless.record(gpt2(), tmp_path / "port.h5", {"input_ids": IDS[:, :11], "use_cache": False})
    report, rows = nameless.compare(tmp_path / "reference.h5", candidate, tmp_path / "report")
    assert report["verdict"] == "pass" and rows["lm_head"]["shape"] == [1, 1, 97], report["first_divergence"]


def test_channels_last_stays_known_behind_a_fault(tmp_path):
    def decoder():
        torch.manual_seed(0)
        return diffusers.AutoencoderKL(block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=8,
                                       latent_channels=4).decoder.eval()

    latents = {"sample": torch.randn(1, 4, 5, 7, generator=torch.Generator().manual_seed(1))}
    reference = nameless.record(decoder(), tmp_path / "reference.h5", latents)
    for part, verdict in ((None, "pass"), ("conv1", "fail")):
        port = decoder()
        if part:
            flip_rows(port.mid_block.resnets[0].conv1)
        nameless.rewrite(nameless.record(port, tmp_path / "port.h5", latents), tmp_path / "candidate.h5", keep=lambda path: not path.startswith("op "), name=lambda _, path: path,
                         layout=lambda _, array: array.transpose(0, 2, 3, 1) if array.ndim == 4 else array.reshape(1, 32, 5, 7).transpose(0, 2, 3, 1) if array.ndim == 3 and array.shape[-1] == 35
                         and array.shape[1] == 32 else array)
        report, _ = nameless.compare(reference, tmp_path / "candidate.h5", tmp_path / "report")
        assert report["verdict"] == verdict and report["counts"]["shape"] == 0, (report["counts"], report["first_divergence"])
    assert report["first_divergence"]["path"] == "mid_block.resnets.0.conv1"


def test_an_encoders_output_that_the_model_returns_is_covered_by_what_reads_it(tmp_path):
    def bart():
        torch.manual_seed(0)
        config = transformers.BartConfig(d_model=48, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96,
                                         vocab_size=97, max_position_embeddings=32, use_cache=False, init_std=.15)
        return transformers.BartForConditionalGeneration(config).eval()

    reference = nameless.record(bart(), tmp_path / "reference.h5", {"input_ids": IDS, "decoder_input_ids": IDS.flip(1)})
    with parity_probe.Writer(tmp_path / "candidate.h5") as writer, torch.no_grad():
        writer.write("logits", bart()(input_ids=IDS, decoder_input_ids=IDS.flip(1)).logits.numpy())
    report, _ = nameless.compare(reference, tmp_path / "candidate.h5", tmp_path / "report")
    assert report["verdict"] == "pass", report["counts"]
