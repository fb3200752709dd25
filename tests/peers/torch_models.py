"""The models of `concertina bench step` in PyTorch, as PyTorch users would write them: fused
attention, one product for query, key and value, and one for gate and up.

Legend: B samples per microbatch, T rows per sample, C width, H heads, V vocabulary.
"""
import dataclasses

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass
class Sizes:
    layers: int = 6
    width: int = 384
    heads: int = 6
    context: int = 256
    vocab: int = 256
    kv_heads: int = 2  # Llama
    image: int = 64  # ViT: height and width, pixels
    channels: int = 3
    patch: int = 4
    classes: int = 10



class Attention(nn.Module):
    def __init__(self, s, kv_heads=None, causal=True, bias=True, rotary=False):
        super().__init__()
        self.d, self.h, self.kv, self.causal = s.width // s.heads, s.heads, kv_heads or s.heads, causal
        self.qkv = nn.Linear(s.width, (self.h + 2 * self.kv) * self.d, bias=bias)
        self.project = nn.Linear(s.width, s.width, bias=bias)
        self.rotary = rotary
        if rotary:
            angles = torch.outer(torch.arange(s.context), 1e4 ** (-torch.arange(0, self.d, 2) / self.d))
            self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1))  # [T,C/H]
            self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))

    def rotate(self, x):  # [B,H,T,C/H]
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, x, mask=None):  # [B,T,C], [B,1,1,T]
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, -1, self.d).transpose(1, 2).split([self.h, self.kv, self.kv], 1)
        if self.rotary:
            q, k = self.rotate(q), self.rotate(k)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal, enable_gqa=self.kv != self.h)
        return self.project(y.transpose(1, 2).reshape(b, t, c))


class Mlp(nn.Module):
    def __init__(self, s, gelu):
        super().__init__()
        self.gelu = gelu
        self.up, self.down = nn.Linear(s.width, 4 * s.width), nn.Linear(4 * s.width, s.width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate=self.gelu))


class GatedMlp(nn.Module):
    def __init__(self, s):
        super().__init__()
        hidden = (8 * s.width + 95) // 96 * 32  # 8/3 C, in 32s
        self.gate_up = nn.Linear(s.width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, s.width, bias=False)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, -1)
        return self.down(F.silu(gate) * up)


class PreNorm(nn.Module):
    def __init__(self, s, attention, mlp, norm=nn.LayerNorm):
        super().__init__()
        self.norm_1, self.norm_2 = norm(s.width), norm(s.width)
        self.attention, self.mlp = attention, mlp

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class PostNorm(nn.Module):
    def __init__(self, s, attention, mlp):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.attention, self.mlp = attention, mlp

    def forward(self, x, mask):
        x = self.norm_1(x + self.attention(x, mask))
        return self.norm_2(x + self.mlp(x))


def token_loss(logits, targets):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), targets.reshape(-1), ignore_index=-1)


class Gpt(nn.Module):
    """Pre-norm, learned positions, tanh GELU, biases, head tied to the token embedding. Has layers
    [first, last); the part at the beginning (end) of the model also has the embedding (head)."""

    def __init__(self, s, first=0, last=None):
        super().__init__()
        last = s.layers if last is None else last
        self.begins, self.ends = first == 0, last == s.layers
        if self.begins:
            self.tokens, self.positions = nn.Embedding(s.vocab, s.width), nn.Embedding(s.context, s.width)
        self.blocks = nn.Sequential(*(PreNorm(s, Attention(s), Mlp(s, "tanh")) for _ in range(first, last)))
        if self.ends:
            self.norm, self.head = nn.LayerNorm(s.width), nn.Linear(s.width, s.vocab, bias=False)
        if self.begins and self.ends:
            self.head.weight = self.tokens.weight

    def forward(self, x):
        if self.begins:
            x = self.tokens(x) + self.positions.weight[: x.shape[1]]
        x = self.blocks(x)
        return self.head(self.norm(x)) if self.ends else x

    @staticmethod
    def batch(s, samples):
        return tuple(torch.randint(s.vocab, (2, samples, s.context)))

    loss = staticmethod(token_loss)


class Llama(nn.Module):
    """RMS norms, rotary positions, grouped-query attention, gated MLPs, no biases, an untied
    head."""

    def __init__(self, s):
        super().__init__()
        norm = lambda width: nn.RMSNorm(width, eps=1e-5)
        self.tokens = nn.Embedding(s.vocab, s.width)
        self.blocks = nn.Sequential(*(
            PreNorm(s, Attention(s, s.kv_heads, bias=False, rotary=True), GatedMlp(s), norm)
            for _ in range(s.layers)))
        self.norm, self.head = norm(s.width), nn.Linear(s.width, s.vocab, bias=False)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.tokens(x))))

    batch, loss = staticmethod(Gpt.batch), staticmethod(token_loss)


class Bert(nn.Module):
    """An encoder with norms after the residual, erf GELU, padding, two token types; the head for
    masked tokens is tied to the token embedding and processes every row, as in transformers."""

    def __init__(self, s):
        super().__init__()
        self.tokens, self.positions, self.types = (nn.Embedding(n, s.width) for n in (s.vocab, s.context, 2))
        self.norm = nn.LayerNorm(s.width)
        self.blocks = nn.ModuleList(PostNorm(s, Attention(s, causal=False), Mlp(s, "none")) for _ in range(s.layers))
        self.transform, self.head_norm = nn.Linear(s.width, s.width), nn.LayerNorm(s.width)
        self.head = nn.Linear(s.width, s.vocab)
        self.head.weight = self.tokens.weight

    def forward(self, x, types, mask):
        x = self.norm(self.tokens(x) + self.positions.weight[: x.shape[1]] + self.types(types))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.head_norm(F.gelu(self.transform(x))))

    @staticmethod
    def batch(s, samples):
        """Draws data as bench step does: lengths from 1 to T, with 15% of the tokens as targets."""
        places, lengths = torch.arange(s.context), torch.randint(1, s.context + 1, (samples, 1))
        valid = places < lengths  # [B,T]
        count = ((15 * lengths + 50) // 100).clamp(min=1)
        masked = valid & ((places + 1) * count // lengths > places * count // lengths)
        tokens, targets = torch.randint(s.vocab, (2, samples, s.context))
        types = torch.randint(2, (samples, s.context))
        return tokens, types, valid[:, None, None], torch.where(masked, targets, -1)

    loss = staticmethod(token_loss)


class Vit(nn.Module):
    """Patches and a class token, pre-norm, erf GELU; classifies by the class token."""

    def __init__(self, s):
        super().__init__()
        self.patches = nn.Conv2d(s.channels, s.width, s.patch, s.patch)
        self.first = nn.Parameter(torch.zeros(1, 1, s.width))
        self.positions = nn.Parameter(torch.zeros(1, s.context, s.width))
        self.blocks = nn.Sequential(*(PreNorm(s, Attention(s, causal=False), Mlp(s, "none")) for _ in range(s.layers)))
        self.norm, self.head = nn.LayerNorm(s.width), nn.Linear(s.width, s.classes)

    def forward(self, x):  # [B,channels,image,image]
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x)[:, 0]))

    @staticmethod
    def batch(s, samples):
        return (torch.randn(samples, s.channels, s.image, s.image), torch.randint(s.classes, (samples,)))

    loss = staticmethod(token_loss)


FAMILIES = {"gpt": Gpt, "llama": Llama, "bert": Bert, "vit": Vit}


def make(family, sizes):
    """Returns the model with small random weights. Its batch(sizes, samples) returns the inputs of
    forward and then the targets."""
    if family == "vit":
        sizes.context = (sizes.image // sizes.patch) ** 2 + 1
    return initialized(FAMILIES[family](sizes))


def initialized(model):
    for name, tensor in model.named_parameters():
        if tensor.dim() >= 2:
            nn.init.normal_(tensor, std=0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(tensor)
    return model
