"""Parts of models of sound that read what is asked for: words and times, a duration, words of two encoders, frames of codes."""
import torch

from ...entry import Entry
from ...inputs import also, floats, prompt_mask, times


def _made(name, model, config, inputs, batch=True):
    return Entry(name, "audio", f"diffusers.{model}", config, inputs, batch=batch)


ENTRIES = [
    _made("stable_audio_projection", "pipelines.stable_audio.modeling_stable_audio:StableAudioProjectionModel",
          dict(text_encoder_dim=100, conditioning_dim=152, min_value=0, max_value=47),
          also(floats(text_hidden_states=(37, 100)), start_seconds=times(3.0, 11.5), end_seconds=times(29.0, 41.5))),
    _made("stable_audio_3_duration", "pipelines.stable_audio_3.modeling_stable_audio_3:StableAudio3DurationEmbedder",
          dict(output_dim=212, fourier_dim=128), lambda seed: [{"seconds": torch.tensor([29.0, 141.5])}]),
    _made("audioldm2_projection", "pipelines.audioldm2.modeling_audioldm2:AudioLDM2ProjectionModel",
          dict(text_encoder_dim=92, text_encoder_1_dim=100, langauge_model_dim=152, use_learned_position_embedding=True, max_seq_length=29),
          also(floats(hidden_states=(1, 92), hidden_states_1=(29, 100)), attention_mask=prompt_mask(1, 0), attention_mask_1=prompt_mask(29, 8))),
    _made("minimax_music3_condition", "models.condition_embedders.condition_embedder_minimax_music3:MiniMaxMusic3ConditionEncoder",
          dict(condition_hidden_dim=100, num_condition_layers=4, out_dim=152), floats(hidden_states=(31, 400))),
]
