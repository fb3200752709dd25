#!/usr/bin/env python3
"""PyTorch on the work of `concertina bench step`: one training step, in tokens/s.

    python torch_step.py --threads 2 [--family bert] [--compile] [--micro 8] [--dtype bf16] [--device cuda]
    torchrun --nproc-per-node 2 torch_step.py --dp              # DDP over gloo
    torchrun --nproc-per-node 2 torch_step.py --pp 1f1b         # pipelining over gloo

The models are those of torch_models.py; with --pp, the head of the GPT is untied, since
it is on another rank than the embedding and PyTorch has no means to tie them.
AdamW over all parameters, clipping at 1.0, random tokens. Prints one JSON line: medians over
--steps steps after --warm; on a GPU also the peak of allocated memory, and the rate of a square
product of 8192 in bf16.
"""
import argparse
import dataclasses
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn as nn

import torch_models

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
SIZES = [field.name for field in dataclasses.fields(torch_models.Sizes)]
for key in SIZES:
    parser.add_argument(f"--{key}", type=int, default=getattr(torch_models.Sizes, key))
for key, default in dict(batch=16, threads=1, micro=1, steps=10, warm=3, seed=1).items():
    parser.add_argument(f"--{key}", type=int, default=default)
parser.add_argument("--family", default="gpt", choices=[*torch_models.FAMILIES])
parser.add_argument("--dtype", default="fp32", choices=["fp32", "bf16"])
parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
parser.add_argument("--compile", action="store_true")
parser.add_argument("--dp", action="store_true")
parser.add_argument("--pp", choices=["gpipe", "1f1b"], help="a gpt in stages")
args = parser.parse_args()
WORLD, RANK = (int(os.environ.get(name, default)) for name, default in (("WORLD_SIZE", "1"), ("RANK", "0")))


def pipeline(sizes, x, y):
    """This rank's part of a GPT, and one forward and backward pass through the pipeline."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    cuts = [sizes.layers * i // WORLD for i in range(WORLD + 1)]
    part = torch_models.initialized(torch_models.Gpt(sizes, cuts[RANK], cuts[RANK + 1]))
    stage = PipelineStage(part, RANK, WORLD, torch.device("cpu"))
    kind = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}[args.pp]
    schedule = kind(stage, args.micro, loss_fn=part.loss)

    def forward_backward():
        losses = []
        inputs = [x] if part.begins else []
        targets = dict(target=y, losses=losses) if part.ends else {}
        schedule.step(*inputs, **targets)
        return sum(loss.item() for loss in losses) / max(1, len(losses))

    return part, forward_backward


def replica(model, batch):
    """The whole model, with DDP if there are several ranks; gradients are exchanged once per step."""
    loss_of = model.loss
    if args.dp:
        model = nn.parallel.DistributedDataParallel(model)
    run = torch.compile(model) if args.compile else model

    def forward_backward():
        total = 0.0
        parts = list(zip(*(field.chunk(args.micro) for field in batch)))
        for i, (*inputs, targets) in enumerate(parts):
            if args.dp:
                model.require_backward_grad_sync = i + 1 == len(parts)
            loss = loss_of(run(*inputs), targets) / args.micro
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
    sizes = torch_models.Sizes(**{key: getattr(args, key) for key in SIZES})
    model = torch_models.make(args.family, sizes)
    batch = model.batch(sizes, args.batch // WORLD if args.dp else args.batch)
    model, forward_backward = pipeline(sizes, *batch) if args.pp else replica(model, batch)
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
        print(json.dumps(dict(step_ms=1e3 * step_s, tokens_per_s=args.batch * sizes.context / step_s,
                              loss_first=losses[0], loss_last=losses[-1], world=WORLD,
                              torch=torch.__version__, **gpu, **vars(args))), flush=True)
    if WORLD > 1:
        dist.destroy_process_group()


main()
