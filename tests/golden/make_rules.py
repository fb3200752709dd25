"""Makes rules.json for tests/models/rules_golden_test.cc: python3 make_rules.py

Weights after a few steps of each optimizer, and rates of each lr schedule, in float64. They come
from PyTorch (2.15) if it has them; Lion and LAMB, inverse-sqrt and the warm-up-stable-decay
schedule follow the formulas of their papers. torch.optim.Muon rounds to bf16 before it iterates;
this is disabled here to compare in float64.
"""

import json
import math
import pathlib
from unittest import mock

import numpy as np
import torch
from torch.optim import lr_scheduler, swa_utils

STEPS = 6


def sequence(rng, shape, update, steps=STEPS):
    """A case: the initial weights, a gradient per step, and the weights after each step."""
    w = torch.tensor(rng.normal(size=shape))
    case = {"shape": list(shape), "start": w.flatten().tolist(), "gradients": [], "weights": []}
    step = update(w)
    for _ in range(steps):
        g = torch.tensor(rng.normal(size=shape))
        step(g)
        case["gradients"].append(g.flatten().tolist())
        case["weights"].append(w.flatten().tolist())
    return case


def averaged_sequence(rng, shape, make, decay, steps=20):
    """A case of PyTorch with the exponential moving average of the weights after each step."""
    case = {"ema": decay, "averages": []}

    def update(w):
        module = torch.nn.Module()
        module.w = torch.nn.Parameter(w)
        average = swa_utils.AveragedModel(module, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(decay))
        optimizer = make(module.parameters())

        def step(g):
            module.w.grad = g
            optimizer.step()
            average.update_parameters(module)
            case["averages"].append(average.module.w.detach().flatten().tolist())
        return step
    return case | sequence(rng, shape, update, steps)


def torch_rule(make):
    def update(w):
        w.requires_grad_()
        optimizer = make([w])

        def step(g):
            w.grad = g
            optimizer.step()
        return step
    return update


def lion(lr, beta1, beta2, decay):
    """Chen et al. 2023, algorithm 2."""
    def update(w):
        m = torch.zeros_like(w)

        def step(g):
            w.sub_(lr * (torch.sign(beta1 * m + (1 - beta1) * g) + decay * w))
            m.mul_(beta2).add_(g, alpha=1 - beta2)
        return step
    return update


def lamb(lr, beta1, beta2, eps, decay, adapt):
    """You et al. 2020, algorithm 2, with phi the identity."""
    def update(w):
        m, v, t = torch.zeros_like(w), torch.zeros_like(w), 0

        def step(g):
            nonlocal t
            t += 1
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).add_(g * g, alpha=1 - beta2)
            u = (m / (1 - beta1 ** t)) / ((v / (1 - beta2 ** t)).sqrt() + eps) + decay * w
            w.sub_(lr * (w.norm() / u.norm() if adapt else 1) * u)
        return step
    return update


def muon(matrices, **options):
    """The matrices concatenated in w [in, out], each as PyTorch stores it: [out, in]."""
    def update(w):
        pieces = [piece.T.clone().requires_grad_() for piece in w.split(matrices, dim=1)]
        optimizer = torch.optim.Muon(pieces, **options)

        def step(g):
            for piece, gradient in zip(pieces, g.split(matrices, dim=1)):
                piece.grad = gradient.T.clone()
            with mock.patch.object(torch, "bfloat16", torch.float64):
                optimizer.step()
            with torch.no_grad():
                w.copy_(torch.cat([piece.T for piece in pieces], dim=1))
        return step
    return update


def optimizers():
    rng = np.random.default_rng(3)
    cases = []
    for momentum, dampening, nesterov in [(0, 0, False), (0.9, 0, False), (0.9, 0.3, False),
                                          (0.8, 0, True)]:
        options = {"momentum": float(momentum), "dampening": float(dampening), "nesterov": nesterov}
        cases.append({"name": "sgd", "lr": 0.1, "weight_decay": 0.2, "options": options} | sequence(
            rng, (5, 3), torch_rule(lambda w: torch.optim.SGD(w, lr=0.1, weight_decay=0.2, **options))))
    cases.append({"name": "lion", "lr": 0.01, "weight_decay": 0.3,
                  "options": {"beta1": 0.8, "beta2": 0.95}}
                 | sequence(rng, (5, 3), lion(0.01, 0.8, 0.95, 0.3)))
    for decay, adapt_all in [(True, False), (False, False), (False, True)]:
        rate = 0.3 if decay else 0.0
        cases.append({"name": "lamb", "lr": 0.02, "weight_decay": 0.3, "decay": decay,
                      "options": {"adapt_all": adapt_all}}
                     | sequence(rng, (5, 3), lamb(0.02, 0.9, 0.95, 1e-8, rate, decay or adapt_all)))
    for shape, matrices, nesterov, adjust in [
            ((5, 3), [3], True, "original"), ((3, 5), [5], False, "match_rms_adamw"),
            ((4, 4), [4], True, "match_rms_adamw"), ((4, 10), [4, 2, 4], True, "original"),
            ((6, 16), [8, 8], False, "match_rms_adamw")]:
        cases.append({"name": "muon", "lr": 0.02, "weight_decay": 0.3, "matrices": matrices,
                      "options": {"momentum": 0.9, "nesterov": nesterov, "adjust_lr": adjust}}
                     | sequence(rng, shape, muon(matrices, lr=0.02, weight_decay=0.3, momentum=0.9,
                                                 nesterov=nesterov, adjust_lr_fn=adjust)))
    # Parameters other than hidden matrices take AdamW's steps with a separate rate.
    cases.append({"name": "muon", "lr": 0.02, "weight_decay": 0.3, "options": {"other_lr": 0.5}}
                 | sequence(rng, (5, 3), torch_rule(lambda w: torch.optim.AdamW(
                     w, lr=0.01, betas=(0.9, 0.95), weight_decay=0.3))))
    cases.append({"name": "adamw", "lr": 0.02, "weight_decay": 0.3, "options": {}}
                 | averaged_sequence(rng, (2, 3), lambda w: torch.optim.AdamW(
                     w, lr=0.02, betas=(0.9, 0.95), weight_decay=0.3), decay=0.9))
    return cases


def torch_rates(make, epochs):
    """The factor after 0 .. epochs scheduler steps."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    scheduler, rates = make(optimizer), []
    for epoch in range(epochs + 1):
        rates.append(optimizer.param_groups[0]["lr"])
        if epoch < epochs:
            optimizer.step()
            scheduler.step()
    return rates


def schedules():
    """Rates of steps first .. steps, for a peak of 1."""
    warmup, steps, low = 10, 110, 0.1
    falling, cases = steps - warmup, []

    def add(name, rates, options=None, first=warmup, minimum=low, warm=warmup):
        cases.append({"name": name, "warmup": warm, "steps": steps, "min": minimum, "first": first,
                      "options": options or {}, "rates": rates})

    add("linear", torch_rates(lambda o: lr_scheduler.LinearLR(o, 1.0, low, falling), falling))
    add("polynomial", torch_rates(
        lambda o: lr_scheduler.PolynomialLR(o, falling, power=1.5), falling),
        {"power": 1.5}, minimum=0.0)
    add("exponential", torch_rates(lambda o: lr_scheduler.ExponentialLR(o, 0.99), falling),
        {"gamma": 0.99})
    add("step", torch_rates(lambda o: lr_scheduler.StepLR(o, 30, gamma=0.5), falling),
        {"every": 30, "gamma": 0.5})
    div = 20.0
    add("one-cycle", torch_rates(lambda o: lr_scheduler.OneCycleLR(
        o, 1.0, total_steps=steps, pct_start=0.25, div_factor=div, final_div_factor=1 / (div * low),
        cycle_momentum=False), steps - 1), {"rise": 0.25, "div": div}, first=1)
    # Vaswani et al. 2017, equation 3, divided by its peak.
    width = 64
    add("inverse-sqrt", [min(s ** -0.5, s * warmup ** -1.5) * width ** -0.5 /
                         (width ** -0.5 * warmup ** -0.5) for s in range(1, steps + 1)],
        first=1, minimum=0.0)
    # Haegele et al. 2024, section 3: f(n) of the N decay steps before step `steps`.
    forms = {"linear": lambda x: 1 - x, "sqrt": lambda x: 1 - math.sqrt(x),
             "cosine": lambda x: (1 + math.cos(math.pi * x)) / 2}
    decay = 40
    for form, f in forms.items():
        rates = [s / warmup if s <= warmup else 1.0 if s <= steps - decay
                 else f((s - (steps - decay)) / decay) for s in range(1, steps + 1)]
        add("wsd", rates, {"decay": decay / falling, "form": form}, first=1, minimum=0.0)
    return cases


if __name__ == "__main__":
    path = pathlib.Path(__file__).parent / "rules.json"
    rows = ["%s" % json.dumps(case) for case in optimizers()]
    lrs = ["%s" % json.dumps(case) for case in schedules()]
    path.write_text('{"optimizers": [\n' + ",\n".join(rows) + '\n],\n"schedules": [\n' +
                    ",\n".join(lrs) + "\n]}\n")
