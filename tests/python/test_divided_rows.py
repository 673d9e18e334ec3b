"""What a side that runs in calls of its own hands over of them: the last token alone, axes of its own, shapes that add up by chance."""
import nameless
import parity_probe
import pytest
import torch
import transformers
from spread_models import IDS, gpt2, judged, spread, vae
from test_loops import as_port, last_alone
from test_usual_layouts import channels_last

PROMPT, NEXT = IDS[:, :8], IDS[:, 8:10]


def steps(model, file, prompt):
    """The prompt in these chunks, then two tokens one by one."""
    cache = transformers.DynamicCache(config=model.config)
    with torch.no_grad(), parity_probe.record(model, file):
        for ids in [*prompt, *NEXT.split(1, 1)]:
            model(ids, past_key_values=cache, use_cache=True)
    return file


def samples(model, file):
    """Each sample in calls of its own."""
    with torch.no_grad(), parity_probe.record(model, file):
        for ids, following in zip(PROMPT.split(1), NEXT.split(1)):
            cache = transformers.DynamicCache(config=model.config)
            for part in (ids, *following.split(1, 1)):
                model(part, past_key_values=cache, use_cache=True)
    return file


def test_last_tokens_on_both_sides(tmp_path):
    """As transformers' generate has them: of a prompt in chunks the last one's logits are those of the prompt."""
    model = gpt2()
    forward = model.forward
    model.forward = lambda *ids, **named: forward(*ids, **named, logits_to_keep=1)
    steps(model, tmp_path / "reference.h5", [PROMPT])
    report, red = judged(tmp_path / "reference.h5", as_port(steps(gpt2(), tmp_path / "run.h5", PROMPT.split([5, 3], 1)), tmp_path / "port.h5", last_alone), tmp_path)
    assert report["verdict"] == "pass" and [op["call"] for op in report["ops"] if op["path"] == "lm_head"] == [0, 1, 2], red


RUNS = {"chunks": lambda model, file: steps(model, file, PROMPT.split([5, 3], 1)), "samples": samples}


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
@pytest.mark.parametrize("run", RUNS)
def test_logits_of_the_last_token_of_each_call(run, wrong, tmp_path):
    """Of chunks of a prompt the last one's is the prompt's; samples have one each."""
    steps(gpt2(), tmp_path / "reference.h5", [PROMPT])
    model = gpt2()
    if wrong:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().roll(1, 0))
    report, red = judged(tmp_path / "reference.h5", as_port(RUNS[run](model, tmp_path / "run.h5"), tmp_path / "port.h5", last_alone), tmp_path)
    assert [op["call"] for op in report["ops"] if op["path"] == "lm_head"] == [0, 1, 2]
    assert set(red) == ({"lm_head"} if wrong else set()) and report["counts"]["fail"] == 3 * wrong, red


def test_samples_in_calls_of_their_own_laid_out_otherwise(tmp_path):
    model, pictures = vae((8, 16), 4, 16), torch.randn(2, 3, 12, 16, generator=torch.Generator().manual_seed(2))
    nameless.record(model, tmp_path / "reference.h5", {"sample": pictures})
    with torch.no_grad(), parity_probe.record(model, tmp_path / "run.h5"):
        for picture in pictures.split(1):
            model(picture)
    report, red = judged(tmp_path / "reference.h5", as_port(tmp_path / "run.h5", tmp_path / "port.h5", channels_last), tmp_path)
    assert report["verdict"] == "pass", red
    paths = {path for path, _, _ in nameless.boundaries(tmp_path / "reference.h5") if not path.startswith("op ")}
    assert {op["path"] for op in report["ops"]} >= paths, paths - {op["path"] for op in report["ops"]}


def test_calls_that_add_up_to_a_longer_value_by_chance(tmp_path):
    """A causal convolution of 8 tokens has 10 before it is cut, as many as the prompt and two more: nothing ran anew."""
    config = transformers.Lfm2Config(vocab_size=97, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, conv_L_cache=3, block_ff_dim=64,
                                     layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False)
    steps(spread(transformers.Lfm2ForCausalLM(config)), tmp_path / "reference.h5", [PROMPT])
    values = len(nameless.rewrite(tmp_path / "reference.h5", tmp_path / "port.h5", nameless.numbered(), lambda path: not path.startswith("op ")))
    report, red = judged(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path)
    assert report["verdict"] == "pass" and not any("anew" in warning for warning in report["warnings"]), red
    assert sum(op.get("candidate_path") is not None for op in report["ops"]) == 3 * values  # calls
