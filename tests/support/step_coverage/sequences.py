"""Cases: embedding, attention, recurrent layers."""

from __future__ import annotations

from typing import Any

from step_coverage.case import CLASSES, case, nn, normal, tokens, torch


def _classifier(width: int) -> Any:

    return nn.Sequential(nn.Flatten(), nn.Linear(width, CLASSES))


@case("Embedding", tokens(7, 5))
def embedding() -> Any:
    """Embedding: padding_idx, tokens that occur more than once, scale_grad_by_freq."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Embedding(7, 4, padding_idx=2)
            self.second = nn.Embedding(7, 4, scale_grad_by_freq=True)
            self.last = _classifier(20)

        def forward(self, x: Any) -> Any:
            return self.last(self.first(x) * self.second(x.flip(1)))

    return Two()


@case("Embedding", tokens(7, 5), y=tokens(7, 5))
def embedding_tied() -> Any:
    """An embedding whose weights are the output layer's too, learned positions."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(7, 4), nn.Parameter(0.1 * _ramp(5, 4))
            self.out = nn.Linear(4, 7, bias=False)
            self.out.weight = self.tokens.weight

        def forward(self, x: Any) -> Any:
            return self.out((self.tokens(x) + self.places).tanh()).transpose(1, 2)

    return Tied()


def _ramp(*shape: int) -> Any:
    import math

    return torch.arange(float(math.prod(shape))).sin().reshape(shape)


def _attention(forward: Any, **layers: Any) -> Any:
    """Return a module of named layers and a head, whose body is `forward(self, x)`."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, layer in layers.items():
                setattr(self, name, layer)
            self.head = nn.Sequential(nn.Flatten(), nn.LazyLinear(CLASSES))

        def forward(self, x: Any) -> Any:
            return self.head(forward(self, x))

    return Attention()


def _heads(x: Any, count: int) -> Any:
    """Return (batch, heads, positions, width / heads) of (batch, positions, width)."""
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


@case("Attention", normal(4, 6))
def attention() -> Any:
    """scaled_dot_product_attention: plain, causal, masks of bool and of float, own scale."""
    from torch.nn.functional import scaled_dot_product_attention as attend

    def forward(self: Any, x: Any) -> Any:
        q, k, v = (_heads(part, 2) for part in self.into(x).chunk(3, dim=-1))
        seen = torch.ones(4, 4, dtype=torch.bool, device=x.device).tril(1)
        bias = self.bias.to(x.dtype)
        found = attend(q, k, v) + attend(q, k, v, is_causal=True)
        found = found + attend(q, k, v, attn_mask=seen) + attend(q, k, v, attn_mask=bias, scale=0.3)
        return found.transpose(1, 2).flatten(2)

    layer = _attention(forward, into=nn.Linear(6, 24))
    layer.register_parameter("bias", nn.Parameter(_ramp(2, 4, 4)))
    return layer


@case("Attention", normal(4, 6))
def attention_grouped() -> Any:
    """scaled_dot_product_attention with fewer heads of keys and values than of queries."""
    from torch.nn.functional import scaled_dot_product_attention as attend

    def forward(self: Any, x: Any) -> Any:
        q, k, v = _heads(self.query(x), 4), _heads(self.key(x), 2), _heads(self.value(x), 2)
        found = attend(q, k, v, is_causal=True, enable_gqa=True)
        return found.transpose(1, 2).flatten(2)

    return _attention(forward, query=nn.Linear(6, 12), key=nn.Linear(6, 6), value=nn.Linear(6, 6, bias=False))


@case("Attention", normal(4, 6))
def multihead_attention() -> Any:
    """MultiheadAttention: self and cross, causal, key_padding_mask, weights returned."""

    def forward(self: Any, x: Any) -> Any:
        causal = nn.Transformer.generate_square_subsequent_mask(4, dtype=x.dtype)
        first, _ = self.own(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)
        padding = torch.tensor([[False, False, True, False]]).expand(x.shape[0], 4)
        second, weights = self.other(
            first.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1), key_padding_mask=padding
        )
        return torch.cat([second.transpose(0, 1), weights], dim=-1)

    return _attention(
        forward, own=nn.MultiheadAttention(6, 2, batch_first=True), other=nn.MultiheadAttention(6, 3, bias=False)
    )


@case("Transformer", normal(4, 8))
def transformer_encoder() -> Any:
    """TransformerEncoder of two layers, norm after, ReLU."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return _attention(
        lambda self, x: self.encoder(x), encoder=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    )


@case("Transformer", normal(4, 8))
def transformer_encoder_pre_norm() -> Any:
    """TransformerEncoderLayer: norm first, GELU, causal mask."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)

    def forward(self: Any, x: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(4, dtype=x.dtype)
        return self.layer(x, src_mask=mask, is_causal=True)

    return _attention(forward, layer=layer)


@case("Transformer", normal(4, 8))
def transformer_decoder() -> Any:
    """TransformerDecoderLayer: causal mask, cross attention to an encoder's memory."""

    def forward(self: Any, x: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(4, dtype=x.dtype)
        return self.decoder(x, self.memory(x).tanh(), tgt_mask=mask, tgt_is_causal=True)

    return _attention(
        forward, memory=nn.Linear(8, 8), decoder=nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    )


@case("Transformer", tokens(11, 6), y=tokens(11, 6))
def language_model() -> Any:
    """A small GPT: tokens, positions, causal blocks with norm first, tied output, per-token loss."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(6, 8)
            self.block = nn.TransformerEncoderLayer(
                8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.norm, self.out = nn.LayerNorm(8), nn.Linear(8, 11, bias=False)
            self.out.weight = self.tokens.weight

        def forward(self, x: Any) -> Any:
            h = self.tokens(x) + self.places(torch.arange(6, device=x.device))
            mask = nn.Transformer.generate_square_subsequent_mask(6, dtype=h.dtype)
            return self.out(self.norm(self.block(h, src_mask=mask, is_causal=True))).transpose(1, 2)

    return Model()


def _recurrent(layer: Any) -> Any:
    """Return a classifier of a recurrent layer's outputs and last state."""

    def forward(self: Any, x: Any) -> Any:
        out, state = self.layer(x)
        last = state[0] if isinstance(state, tuple) else state
        return torch.cat([out.flatten(1), last.transpose(0, 1).flatten(1)], dim=1)

    return _attention(forward, layer=layer)


@case("Recurrent", normal(3, 4))
def lstm() -> Any:
    """LSTM of two layers, both directions."""
    return _recurrent(nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True))


@case("Recurrent", normal(3, 4))
def lstm_projected() -> Any:
    """LSTM with a projection, without bias."""
    return _recurrent(nn.LSTM(4, 5, proj_size=3, bias=False, batch_first=True))


@case("Recurrent", normal(3, 4))
def gru() -> Any:
    """GRU of two layers, both directions."""
    return _recurrent(nn.GRU(4, 3, num_layers=2, bidirectional=True, batch_first=True))


@case("Recurrent", normal(3, 4))
def rnn() -> Any:
    """RNN with tanh, then with ReLU."""

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.RNN(4, 4, batch_first=True)
            self.second = nn.RNN(4, 3, nonlinearity="relu", batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x)[0])

    return _recurrent(Both())


@case("Recurrent", normal(3, 4))
def cells() -> Any:
    """LSTMCell and GRUCell in a loop of the module."""

    def forward(self: Any, x: Any) -> Any:
        h = c = g = x.new_zeros(x.shape[0], 3)
        for step in x.unbind(1):
            h, c = self.lstm(step, (h, c))
            g = self.gru(h, g)
        return torch.cat([h, c, g], dim=1)

    return _attention(forward, lstm=nn.LSTMCell(4, 3), gru=nn.GRUCell(3, 3))
