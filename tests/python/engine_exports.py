"""Small models of many families to export, beside those of engine_models: their inputs, and for each one fault of its graph and the module that it lies in.

    python engine_exports.py FOLDER [--only NAME]    # a row a model: healthy and faulty, as the graph stands and optimised
"""
import argparse
import dataclasses
import functools
import json
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import torch
import transformers

import parity_probe
import program
from parity_probe.engines import onnxruntime as recorder
from parity_probe.engines.module_paths import inside
from parity_probe.engines.onnxruntime import names

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = {"input_ids": np.random.RandomState(7).randint(3, 90, (2, 11))}
IMAGE = {"pixel_values": np.random.RandomState(7).randn(2, 3, 40, 32).astype(np.float32)}
SQUARE = {"pixel_values": np.random.RandomState(8).randn(2, 3, 28, 28).astype(np.float32)}
SOUND = {"input_values": np.random.RandomState(7).randn(2, 700).astype(np.float32)}
_CLIP = dict(hidden_size=48, intermediate_size=104, num_hidden_layers=2, num_attention_heads=4)
_CLIP_TEXT = dict(_CLIP, vocab_size=91, max_position_embeddings=40)


@dataclasses.dataclass(frozen=True)
class Export:
    kind: str       # of transformers: <kind>Config
    model: str      # class
    config: dict
    inputs: dict
    fault: object   # changes the graph
    module: str     # where it then is wrong


def nodes(graph, module, kind):
    return [n for n in graph.node if n.op_type == kind and inside(names.module_of(n) or "", module)]


def other_op(module, kind, other, place=0):
    """One node computes something else."""
    def change(graph):
        nodes(graph, module, kind)[place].op_type = other
    return change


def attribute(module, kind, name, value, place=0):
    def change(graph):
        node = nodes(graph, module, kind)[place]
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])
    return change


def left_out(module, kind, place=0, operand=0):
    """What reads one node's result reads its operand instead."""
    def change(graph):
        node = nodes(graph, module, kind)[place]
        for reader in graph.node:
            for i, name in enumerate(reader.input):
                if name == node.output[0]:
                    reader.input[i] = node.input[operand]
    return change


def weight(module, change):
    """The weight that the module's product reads, however the exporter named it."""
    def apply(graph):
        name = nodes(graph, module, "MatMul")[0].input[1]
        tensor = next(i for i in graph.initializer if i.name == name)
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(change(onnx.numpy_helper.to_array(tensor))), name))
    return apply


EXPORTS = {
    "opt": Export("OPT", "OPTForCausalLM", dict(vocab_size=91, hidden_size=48, ffn_dim=104, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=40,
                                                word_embed_proj_dim=48), TEXT, other_op("model.decoder.layers.1", "Relu", "Sigmoid"), "model.decoder.layers.1"),
    "gpt_neox": Export("GPTNeoX", "GPTNeoXForCausalLM", dict(vocab_size=91, hidden_size=48, intermediate_size=104, num_hidden_layers=3, num_attention_heads=4,
                                                             max_position_embeddings=40), TEXT,
                       attribute("gpt_neox.layers.1.post_attention_layernorm", "LayerNormalization", "epsilon", 1e-2), "gpt_neox.layers.1.post_attention_layernorm"),
    "bloom": Export("Bloom", "BloomForCausalLM", dict(vocab_size=91, hidden_size=48, n_layer=3, n_head=4), TEXT,
                    weight("transformer.h.1.mlp.dense_h_to_4h", lambda w: w[:, ::-1]), "transformer.h.1.mlp.dense_h_to_4h"),
    "t5_encoder": Export("T5", "T5EncoderModel", dict(vocab_size=91, d_model=48, d_kv=12, d_ff=104, num_layers=3, num_heads=4, feed_forward_proj="gated-gelu"), TEXT,
                         other_op("encoder.block.1.layer.1.DenseReluDense.act", "Tanh", "Erf"), "encoder.block.1.layer.1.DenseReluDense.act"),
    "resnet": Export("ResNet", "ResNetForImageClassification", dict(embedding_size=8, hidden_sizes=[12, 20], depths=[2, 2], layer_type="basic", num_labels=5), IMAGE,
                     left_out("resnet.encoder.stages.1.layers.1", "Add"), "resnet.encoder.stages.1.layers.1"),
    "segformer": Export("Segformer", "SegformerForImageClassification",
                        dict(num_encoder_blocks=2, depths=[1, 2], sr_ratios=[2, 1], hidden_sizes=[16, 24], num_attention_heads=[2, 3], patch_sizes=[7, 3], strides=[4, 2],
                             mlp_ratios=[2, 2], num_labels=5), IMAGE, attribute("segformer.stages.1.blocks.1.mlp.activation_fn", "Gelu", "approximate", "tanh"),
                        "segformer.stages.1.blocks.1.mlp.activation_fn"),
    "wav2vec2": Export("Wav2Vec2", "Wav2Vec2Model", dict(vocab_size=20, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=80, conv_dim=[16, 16],
                                                         conv_stride=[5, 4], conv_kernel=[10, 4], num_feat_extract_layers=2, num_conv_pos_embeddings=8,
                                                         num_conv_pos_embedding_groups=4, apply_spec_augment=False), SOUND,
                       attribute("encoder.layers.1.final_layer_norm", "LayerNormalization", "epsilon", 1e-2), "encoder.layers.1.final_layer_norm"),
    "olmo2": Export("Olmo2", "Olmo2ForCausalLM", dict(vocab_size=91, hidden_size=48, intermediate_size=104, num_hidden_layers=3, num_attention_heads=4,
                                                      num_key_value_heads=2, max_position_embeddings=40), TEXT,
                    other_op("model.layers.1.mlp.act_fn", "Sigmoid", "Tanh"), "model.layers.1.mlp.act_fn"),
    "gptj": Export("GPTJ", "GPTJForCausalLM", dict(vocab_size=91, n_embd=48, n_layer=3, n_head=4, rotary_dim=8, n_positions=40), TEXT,
                   other_op("transformer.h.1", "Add", "Sub", -1), "transformer.h.1"),
    "dinov2": Export("Dinov2", "Dinov2Model", dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2, image_size=28, patch_size=7), SQUARE,
                     attribute("encoder.layer.1.norm2", "LayerNormalization", "epsilon", 1e-2), "encoder.layer.1.norm2"),
    "regnet": Export("RegNet", "RegNetForImageClassification", dict(embedding_size=8, hidden_sizes=[12, 20], depths=[1, 2], groups_width=4, num_labels=5), IMAGE,
                     left_out("regnet.encoder.stages.1.layers.1", "Add"), "regnet.encoder.stages.1.layers.1"),
    "clip_text": Export("CLIPText", "CLIPTextModel", _CLIP_TEXT, TEXT,
                        other_op("encoder.layers.1.mlp.activation_fn", "Sigmoid", "Tanh"), "encoder.layers.1.mlp.activation_fn"),
    # one layer called three times: the graph does not tell its calls apart
    "albert": Export("Albert", "AlbertModel", dict(vocab_size=91, embedding_size=24, hidden_size=48, intermediate_size=104, num_hidden_layers=3, num_attention_heads=4,
                                                   max_position_embeddings=40), TEXT,
                     attribute("encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm", "LayerNormalization", "epsilon", 1e-2),
                     "encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm"),
    # whose results are four numbers, computed outside of any part
    "clip": Export("CLIP", "CLIPModel", dict(text_config=_CLIP_TEXT, vision_config=dict(_CLIP, image_size=28, patch_size=7), projection_dim=32),
                   {**TEXT, **SQUARE}, attribute("vision_model.encoder.layers.1.layer_norm2", "LayerNormalization", "epsilon", 1e-2), "vision_model.encoder.layers.1.layer_norm2"),
}


def model(name):
    """The same weights each time; norms that are not one, biases that are not zero."""
    export = EXPORTS[name]
    config = getattr(transformers, export.kind + "Config")(**export.config, attn_implementation="eager")
    torch.manual_seed(0)
    made = getattr(transformers, export.model)(config).eval()
    made.config.use_cache = False
    made.config.return_dict = True
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * (.2 if parameter.dim() == 1 else .08))
        for buffer, value in made.named_buffers():
            if buffer.endswith(("running_mean", "running_var")):
                value.add_(torch.rand_like(value) * .3)
    return made


def export(name, folder):
    """Records the reference and exports it; returns both files."""
    made, inputs = model(name), {k: torch.tensor(v) for k, v in EXPORTS[name].inputs.items()}
    with torch.no_grad(), parity_probe.record(made, folder / f"{name}.ref.h5"):
        made(**inputs)
    torch.onnx.export(made, (), folder / f"{name}.onnx", kwargs=inputs, dynamo=True, input_names=list(inputs), verbose=False)
    return folder / f"{name}.ref.h5", folder / f"{name}.onnx"


def port(name, file, recording, optimisation, wrong):
    """Runs the exported model, with its fault or without."""
    if wrong:
        graph = onnx.load(file)
        EXPORTS[name].fault(graph.graph)
        file = file.with_suffix(".wrong.onnx")
        onnx.save(graph, file)
    recorder.record(file, EXPORTS[name].inputs, recording, optimisation=optimisation, threads=1)
    return recording


_FOLDER = tempfile.TemporaryDirectory()  # of this process: several files of tests ask for the same


@functools.cache
def exported(name):
    """`export`, once."""
    return export(name, pathlib.Path(_FOLDER.name))


@functools.cache
def ran(name, optimisation, wrong):
    """`port` of that, once."""
    return port(name, exported(name)[1], pathlib.Path(_FOLDER.name) / f"{name}.{optimisation}.{wrong}.h5", optimisation, wrong)


def compare(reference, candidate):
    """(exit status, report, CPU seconds)."""
    out = candidate.with_suffix(".report")
    done = program.run("compare", reference, candidate, "--out", out, "--quiet", timeout=600)
    if done.returncode == 2:
        raise RuntimeError(done.stderr)
    return done.returncode, json.loads((out / "report.json").read_text()), done.cpu_seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=list(EXPORTS))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    bad = 0
    for name in options.only or EXPORTS:
        reference, file = export(name, options.folder)
        for optimisation in ("none", "all"):
            for wrong in (False, True):
                recording = port(name, file, options.folder / f"{name}.{optimisation}{'.wrong' if wrong else ''}.h5", optimisation, wrong)
                status, report, seconds = compare(reference, recording)
                first = (report["first_divergence"] or {}).get("path", "")
                right = status == 1 and inside(first.split("/")[0], EXPORTS[name].module) if wrong else status == 0
                bad += not right
                print("right" if right else "WRONG", name, optimisation, "faulty" if wrong else "healthy", status, first, report["counts"], f"{seconds:.1f} s", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
