#!/usr/bin/env python3
"""Writes label_smoothing.json: float64 losses and gradients of torch's cross_entropy(label_smoothing=...) for
rows (targets of -1 are ignored) and spans, whose starts and ends are the two columns of logits; and of rows that are
also compared with a teacher's by kl_div.

python3 tests/golden/make_label_smoothing.py      (torch)
"""
import json
import pathlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(11)
SCALE = 0.25


def case(logits, losses, **more):
    (SCALE * losses.sum()).backward()
    return more | {"scale": SCALE, "logits": logits.detach().flatten().tolist(), "row_loss": losses.tolist(),
                   "gradient": logits.grad.flatten().tolist()}


def rows(smoothing, count, classes):
    logits = (3 * torch.randn(count, classes)).requires_grad_()
    targets = torch.randint(-1, classes, (count,))
    losses = F.cross_entropy(logits, targets, ignore_index=-1, reduction="none", label_smoothing=smoothing)
    return case(logits, losses, smoothing=smoothing, targets=targets.tolist())


def spans(smoothing, samples, tokens):
    logits = (3 * torch.randn(samples, tokens, 2)).requires_grad_()
    starts, ends = torch.randint(-1, tokens, (samples,)), torch.randint(-1, tokens, (samples,))
    of = lambda side, targets: F.cross_entropy(logits[:, :, side], targets, ignore_index=-1, reduction="none",
                                               label_smoothing=smoothing)
    return case(logits, (of(0, starts) + of(1, ends)) / 2, smoothing=smoothing, tokens=tokens, starts=starts.tolist(),
                ends=ends.tolist())


def taught(share, temperature, count, classes):
    logits, teacher = (3 * torch.randn(count, classes)).requires_grad_(), 2 * torch.randn(count, classes)
    targets = torch.randint(-1, classes, (count,))
    hard = F.cross_entropy(logits, targets, ignore_index=-1, reduction="none", label_smoothing=0.1)
    soft = F.kl_div(F.log_softmax(logits / temperature, -1), F.softmax(teacher / temperature, -1), reduction="none")
    losses = (1 - share) * hard + share * temperature**2 * soft.sum(-1) * (targets >= 0)
    return case(logits, losses, smoothing=0.1, share=share, temperature=temperature, targets=targets.tolist(),
                teacher=teacher.flatten().tolist())


cases = {"torch": torch.__version__,
         "rows": [rows(0.1, 6, 2), rows(0.1, 5, 7), rows(0.5, 4, 37), rows(0.0, 3, 9)],
         "spans": [spans(0.1, 3, 6), spans(0.3, 4, 19)],
         "taught": [taught(0.5, 2.0, 6, 2), taught(0.9, 4.0, 5, 7), taught(1.0, 0.5, 4, 37)]}
rounded = lambda x: round(x, 12) if isinstance(x, float) else [rounded(y) for y in x] if isinstance(x, list) else x
for name in ("rows", "spans", "taught"):
    cases[name] = [{key: rounded(value) for key, value in one.items()} for one in cases[name]]
pathlib.Path(__file__).with_name("label_smoothing.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")
