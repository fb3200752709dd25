#!/usr/bin/env python3
"""PyTorch doing the work of `concertina bench step`: one GPT training step, in tokens/s.

    python torch_step.py --threads 2 [--compile] [--micro 8] [--dtype bf16] [--device cuda]
    torchrun --nproc-per-node 2 torch_step.py --dp              # DDP over gloo
    torchrun --nproc-per-node 2 torch_step.py --pp 1f1b         # pipelining over gloo

GPT-2 architecture: pre-norm, learned positions, tanh GELU, biases, head tied to the token embedding
(not under --pp, where the two are on different ranks and PyTorch has no means to tie them).
AdamW over all parameters, clipping at 1.0, random tokens. Prints one JSON line: medians over
--steps steps behind --warm; on a GPU also the peak of allocated memory, and the rate of a square
product of 8192 in bf16.

Legend: B samples of a microbatch, T tokens, C width, H heads, V vocabulary.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
SIZES = dict(layers=6, width=384, heads=6, context=256, batch=16, vocab=256)
LOOP = dict(threads=1, micro=1, steps=10, warm=3, seed=1)
for key, default in {**SIZES, **LOOP}.items():
    parser.add_argument(f"--{key}", type=int, default=default)
parser.add_argument("--dtype", default="fp32", choices=["fp32", "bf16"])
parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
parser.add_argument("--compile", action="store_true")
parser.add_argument("--dp", action="store_true")
parser.add_argument("--pp", choices=["gpipe", "1f1b"])
args = parser.parse_args()
C, H, T, V = args.width, args.heads, args.context, args.vocab
WORLD, RANK = (int(os.environ.get(name, default)) for name, default in (("WORLD_SIZE", "1"), ("RANK", "0")))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.project = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.up, self.down = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)

    def forward(self, x):  # [B,T,C]
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(b, t, 3, H, C // H).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # [B,H,T,C/H]
        x = x + self.project(y.transpose(1, 2).reshape(b, t, C))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """Layers [first, last); the one that begins (ends) the model has the embedding (head) too."""

    def __init__(self, first, last):
        super().__init__()
        self.begins, self.ends = first == 0, last == args.layers
        if self.begins:
            self.tokens, self.positions = nn.Embedding(V, C), nn.Embedding(T, C)
        self.blocks = nn.Sequential(*(Block() for _ in range(first, last)))
        if self.ends:
            self.norm, self.head = nn.LayerNorm(C), nn.Linear(C, V, bias=False)
        for name, tensor in self.named_parameters():
            if tensor.dim() == 2:
                nn.init.normal_(tensor, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(tensor)
        if self.begins and self.ends:
            self.head.weight = self.tokens.weight

    def forward(self, x):
        if self.begins:
            x = self.tokens(x) + self.positions.weight[: x.shape[1]]
        x = self.blocks(x)
        return self.head(self.norm(x)) if self.ends else x


def cross_entropy(logits, targets):
    return F.cross_entropy(logits.reshape(-1, V).float(), targets.reshape(-1))


def pipeline(x, y):
    """This rank's part of the model, and one forward and backward pass over the pipeline."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    cuts = [args.layers * i // WORLD for i in range(WORLD + 1)]
    part = Gpt(cuts[RANK], cuts[RANK + 1])
    stage = PipelineStage(part, RANK, WORLD, torch.device("cpu"))
    kind = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}[args.pp]
    schedule = kind(stage, args.micro, loss_fn=cross_entropy)

    def forward_backward():
        losses = []
        inputs = [x] if part.begins else []
        targets = dict(target=y, losses=losses) if part.ends else {}
        schedule.step(*inputs, **targets)
        return sum(loss.item() for loss in losses) / max(1, len(losses))

    return part, forward_backward


def replica(x, y):
    """The whole model, in DDP if there are several ranks; gradients meet once a step."""
    model = Gpt(0, args.layers)
    if args.dp:
        model = nn.parallel.DistributedDataParallel(model)
    run = torch.compile(model) if args.compile else model

    def forward_backward():
        total = 0.0
        parts = list(zip(x.chunk(args.micro), y.chunk(args.micro)))
        for i, (inputs, targets) in enumerate(parts):
            if args.dp:
                model.require_backward_grad_sync = i + 1 == len(parts)
            loss = cross_entropy(run(inputs), targets) / args.micro
            loss.backward()
            total += loss.item()
        return total

    return model, forward_backward


def synchronize():
    if args.device == "cuda":
        torch.cuda.synchronize()
    if WORLD > 1:
        dist.barrier()


def product_flops_per_s(n=8192, times=10):
    a, b = torch.randn(2, n, n, device=args.device, dtype=torch.bfloat16)
    seconds = []
    for _ in range(5):
        synchronize()
        start = time.perf_counter()
        for _ in range(times):
            a @ b
        synchronize()
        seconds.append((time.perf_counter() - start) / times)
    return 2 * n**3 / statistics.median(seconds)


def main():
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    torch.set_default_device(args.device)
    if WORLD > 1:
        dist.init_process_group("gloo")
    batch = args.batch // WORLD if args.dp else args.batch
    x, y = torch.randint(V, (2, batch, T))
    model, forward_backward = pipeline(x, y) if args.pp else replica(x, y)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    seconds, losses = [], []
    for step in range(args.warm + args.steps):
        synchronize()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(args.device, torch.bfloat16, enabled=args.dtype == "bf16"):
            losses.append(forward_backward())
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        synchronize()
        if step >= args.warm:
            seconds.append(time.perf_counter() - start)
    step_s = statistics.median(seconds)
    gpu = {}
    if args.device == "cuda":
        gpu = dict(peak_bytes=torch.cuda.max_memory_allocated(), gpu=torch.cuda.get_device_name(),
                   product_flops_per_s=product_flops_per_s())
    if RANK == (WORLD - 1 if args.pp else 0):
        print(json.dumps(dict(step_ms=1e3 * step_s, tokens_per_s=args.batch * T / step_s,
                              loss_first=losses[0], loss_last=losses[-1], world=WORLD,
                              torch=torch.__version__, **gpu, **vars(args))), flush=True)
    if WORLD > 1:
        dist.destroy_process_group()


main()
