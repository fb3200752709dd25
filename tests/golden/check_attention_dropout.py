"""Compares loss and gradient norm with model.attention_dropout to transformers': mean and standard
deviation over as many masks as the run has steps, each within 3 standard errors.

usage: check_attention_dropout.py MODEL TEXT RUN [SHARE]
MODEL: a GPT-2 written by `checkpoint export`. RUN was trained from it on TEXT only, the bytes of
one batch plus one, with optimizer.lr=1e-30 data.windows=fixed data.validation=0 log.every=1, so
every step has the same samples and weights but a different mask.
"""
import json
import sys

import numpy
import torch
from transformers import GPT2LMHeadModel

model_path, text, run = sys.argv[1:4]
share = float(sys.argv[4]) if len(sys.argv) > 4 else 0.3
model = GPT2LMHeadModel.from_pretrained(model_path, attn_pdrop=share, attn_implementation="eager")
tokens = torch.tensor(list(open(text, "rb").read()))
context = model.config.n_positions
inputs, targets = tokens[:-1].reshape(-1, context), tokens[1:].reshape(-1)


def loss_and_norm():
    model.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs).logits.flatten(0, 1), targets)
    loss.backward()
    return loss.item(), sum(p.grad.square().sum() for p in model.parameters()).sqrt().item()


def spread(x):
    """Returns mean, standard deviation and their standard errors (the latter from the fourth moment)."""
    n, deviation = len(x), x.std(ddof=1)
    fourth = ((x - x.mean()) ** 4).mean()
    return x.mean(), deviation, deviation / n**0.5, ((fourth - deviation**4) / n) ** 0.5 / (2 * deviation)


ours = numpy.array([(step["loss"], step["grad_norm"]) for step in map(json.loads, open(run + "/metrics.jsonl"))])
torch.manual_seed(1)
model.eval()
print("without dropout: loss %.6f, gradient norm %.6f" % loss_and_norm())
model.train()
theirs = numpy.array([loss_and_norm() for _ in range(len(ours))])
worst = 0
for column, name in enumerate(["loss", "gradient norm"]):
    a, b = spread(ours[:, column]), spread(theirs[:, column])
    z = [(a[i] - b[i]) / (a[2 + i] ** 2 + b[2 + i] ** 2) ** 0.5 for i in (0, 1)]
    worst = max(worst, *map(abs, z))
    print(f"{name}: mean {a[0]:.5f} and {b[0]:.5f} (z {z[0]:+.2f}), deviation {a[1]:.5f} and {b[1]:.5f} (z {z[1]:+.2f})")
sys.exit(int(worst >= 3))
