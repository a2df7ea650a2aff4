"""transformers: its models with their own masks, as a user wraps them: tensors in, logits out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from step_families.case import Example, add, classified

WIDTH: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
GROUPED = {**WIDTH, "num_key_value_heads": 2}
# By name: the classes of configuration and model, and arguments of the configuration.
DECODERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", {"vocab_size": 40, "n_embd": 32, "n_layer": 2, "n_head": 4}),
    "llama": ("LlamaConfig", "LlamaForCausalLM", GROUPED),
    "mistral": ("MistralConfig", "MistralForCausalLM", {**GROUPED, "sliding_window": 4}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", GROUPED),
    "opt": ("OPTConfig", "OPTForCausalLM", {**WIDTH, "ffn_dim": 64, "word_embed_proj_dim": 32}),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", WIDTH),
}
ENCODERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertConfig", "BertForSequenceClassification", {**WIDTH, "num_labels": 5}),
    "roberta": ("RobertaConfig", "RobertaForSequenceClassification", {**WIDTH, "num_labels": 5}),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertForSequenceClassification",
        {"vocab_size": 40, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "num_labels": 5},
    ),
}
MIXTURE = {**GROUPED, "num_local_experts": 2, "num_experts_per_tok": 1}


def _wrapped(model: Any, call: Callable[..., Any]) -> Any:
    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *tensors: Any) -> Any:
            return call(self.model, *tensors)

    return Wrapped().train()


def _made(config: str, model: str, arguments: dict[str, Any]) -> Any:
    import torch
    import transformers

    from step_families.case import without_dropout

    made = getattr(transformers, model)(getattr(transformers, config)(**arguments))
    for name, value in vars(made.config).items():
        if "drop" in name and isinstance(value, float):
            setattr(made.config, name, 0.0)
    for part in made.modules():
        if isinstance(getattr(part, "attention_dropout", None), float):
            part.attention_dropout = 0.0
    torch.manual_seed(0)
    return without_dropout(made)


def _tokens(rows: int = 2, length: int = 8) -> tuple[Any, Any]:
    """Return tokens, and a mask with padding at the end of the second row."""
    import torch

    mask = torch.ones(rows, length, dtype=torch.int64)
    mask[1, length - 3 :] = 0
    return torch.randint(3, 40, (rows, length)), mask


def _next_token(outputs: Any, y: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(outputs.transpose(1, 2), y)


def _decoder(config: str, model: str, arguments: dict[str, Any], masked: bool) -> Example:
    ids, mask = _tokens()
    if masked:
        call = lambda m, ids, mask: m(input_ids=ids, attention_mask=mask, use_cache=False).logits  # noqa: E731
    else:
        call = lambda m, ids: m(input_ids=ids).logits  # noqa: E731
    data = (ids, mask, ids) if masked else (ids, ids)
    return Example(module=_wrapped(_made(config, model, arguments), call), loss=_next_token, data=data)


def _encoder(config: str, model: str, arguments: dict[str, Any], attention: str) -> Example:
    made = _made(config, model, {**arguments, "attn_implementation": attention})
    return classified(_wrapped(made, lambda m, ids, mask: m(input_ids=ids, attention_mask=mask).logits), *_tokens())


def _t5() -> Example:
    sizes = {"vocab_size": 40, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    made = _made("T5Config", "T5ForConditionalGeneration", {**sizes, "decoder_start_token_id": 0})
    ids, mask = _tokens()

    def call(m: Any, ids: Any, mask: Any, out: Any) -> Any:
        return m(input_ids=ids, attention_mask=mask, decoder_input_ids=out, use_cache=False).logits

    return Example(module=_wrapped(made, call), loss=_next_token, data=(ids, mask, ids, ids))


def _vit() -> Example:
    import torch

    sizes = {k: v for k, v in WIDTH.items() if k not in ("vocab_size", "max_position_embeddings")}
    made = _made(
        "ViTConfig", "ViTForImageClassification", {**sizes, "image_size": 16, "patch_size": 8, "num_labels": 5}
    )
    return classified(_wrapped(made, lambda m, x: m(pixel_values=x).logits), torch.randn(4, 3, 16, 16))


def _whisper() -> Example:
    import torch

    sizes = {"vocab_size": 40, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "num_mel_bins": 8}
    sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    more = {"max_source_positions": 16, "max_target_positions": 16, "pad_token_id": 0, "bos_token_id": 1}
    made = _made(
        "WhisperConfig",
        "WhisperForConditionalGeneration",
        {**sizes, **more, "eos_token_id": 2, "decoder_start_token_id": 1},
    )
    ids, _ = _tokens()
    call = lambda m, x, ids: m(input_features=x, decoder_input_ids=ids, use_cache=False).logits  # noqa: E731
    return Example(module=_wrapped(made, call), loss=_next_token, data=(torch.randn(2, 8, 32), ids, ids))


def _mamba() -> Example:
    sizes = {"vocab_size": 40, "hidden_size": 16, "state_size": 4, "num_hidden_layers": 2, "use_cache": False}
    made = _made("MambaConfig", "MambaForCausalLM", sizes)
    ids, _ = _tokens()
    return Example(module=_wrapped(made, lambda m, ids: m(input_ids=ids).logits), loss=_next_token, data=(ids, ids))


def _mixtral() -> Example:
    return _decoder("MixtralConfig", "MixtralForCausalLM", MIXTURE, False)


for _name, _made_of in DECODERS.items():
    add("transformers", _name, partial(_decoder, *_made_of, False))
    add("transformers", f"{_name}, mask", partial(_decoder, *_made_of, True))
for _name, _made_of in ENCODERS.items():
    add("transformers", f"{_name}, mask", partial(_encoder, *_made_of, "sdpa"))
add("transformers", "bert, mask, eager", partial(_encoder, *ENCODERS["bert"], "eager"))
add("transformers", "t5, mask", _t5)
add("transformers", "vit", _vit)
add("transformers", "whisper", _whisper)
add("transformers", "mamba", _mamba)
add("transformers", "mixtral", _mixtral)
