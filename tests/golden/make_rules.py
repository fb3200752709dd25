"""Makes rules.json, of tests/models/rules_golden_test.cc: python3 make_rules.py

Weights after a few steps of each optimizer, and rates of each lr schedule, in float64. Those of
PyTorch are PyTorch's; Lion and Lamb, inverse-sqrt and the warm-up-stable-decay schedule, which it
has not, follow the formulas of their papers.
"""

import json
import math
import pathlib

import numpy as np
import torch
from torch.optim import lr_scheduler

STEPS = 6


def sequence(rng, shape, update):
    """A case: the first weights, a gradient a step, and the weights after each."""
    w = torch.tensor(rng.normal(size=shape))
    case = {"shape": list(shape), "start": w.flatten().tolist(), "gradients": [], "weights": []}
    step = update(w)
    for _ in range(STEPS):
        g = torch.tensor(rng.normal(size=shape))
        step(g)
        case["gradients"].append(g.flatten().tolist())
        case["weights"].append(w.flatten().tolist())
    return case


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
    """Rates of steps first .. steps, of a peak of 1."""
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
    # Vaswani et al. 2017, equation 3, over its own peak.
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
