"""Makes the golden files of tests/models/golden_test.cc with PyTorch: python3 make_golden.py [NAME...]

gradients.{json,bin}: a tiny GPT with its weights, one batch, logits, loss and every gradient,
computed in float64. curve.{json,bin}: initial weights, batches and the loss of 200 training steps
in float32. Each .json gives each tensor's type, shape and byte offset in the little-endian .bin.
distillation.json: the losses of 20 steps with a teacher, in float64.
Weights are stored [in, out], as in GPT-2's checkpoints.
"""

import json
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

# Genesis 1:1-13, King James Version.
TEXT = """In the beginning God created the heaven and the earth.
And the earth was without form, and void; and darkness was upon the face of the deep. And the
Spirit of God moved upon the face of the waters.
And God said, Let there be light: and there was light.
And God saw the light, that it was good: and God divided the light from the darkness.
And God called the light Day, and the darkness he called Night. And the evening and the morning
were the first day.
And God said, Let there be a firmament in the midst of the waters, and let it divide the waters
from the waters.
And God made the firmament, and divided the waters which were under the firmament from the waters
which were above the firmament: and it was so.
And God called the firmament Heaven. And the evening and the morning were the second day.
And God said, Let the waters under the heaven be gathered together unto one place, and let the dry
land appear: and it was so.
And God called the dry land Earth; and the gathering together of the waters called he Seas: and
God saw that it was good.
And God said, Let the earth bring forth grass, the herb yielding seed, and the fruit tree yielding
fruit after his kind, whose seed is in itself, upon the earth: and it was so.
And the earth brought forth grass, and herb yielding seed after his kind, and the tree yielding
fruit, whose seed was in itself, after his kind: and God saw that it was good.
And the evening and the morning were the third day.
"""


class File:
    """Tensors and numbers for one pair of .json and .bin files."""

    def __init__(self, name, config):
        self.name, self.index, self.data = name, {"config": config, "tensors": {}}, b""

    def add(self, name, tensor):
        array = np.ascontiguousarray(tensor.detach().numpy() if torch.is_tensor(tensor) else tensor)
        kind = "i32" if array.dtype.kind == "i" else "f32"
        array = array.astype("<i4" if kind == "i32" else "<f4")
        self.index["tensors"][name] = {
            "type": kind, "shape": list(array.shape), "offset": len(self.data)}
        self.data += array.tobytes()

    def write(self):
        folder = pathlib.Path(__file__).parent
        (folder / f"{self.name}.json").write_text(json.dumps(self.index, indent=1) + "\n")
        (folder / f"{self.name}.bin").write_bytes(self.data)


def initial_weights(config, rng, exercise):
    """GPT-2's initialization; `exercise` makes biases and norms random too, so that they matter."""
    width, layers = config["width"], config["layers"]
    residual = 0.02 / math.sqrt(2 * layers)
    weights = {}

    def add(name, shape, std, mean=0.0):
        spread = std or (0.1 if exercise else 0.0)
        weights[name] = torch.tensor(
            (mean + spread * rng.standard_normal(shape)).astype(np.float32))

    def norm(unit):
        add(f"{unit}/ln.weight", (width,), 0, 1.0)
        add(f"{unit}/ln.bias", (width,), 0)

    scale = 10.0 if exercise else 1.0  # weights large enough that attention is far from uniform
    add("000.embedding/wpe", (config["context"], width), 0.02 * scale)
    add("wte", (config["vocab"], width), 0.02 * scale)
    for layer in range(layers):
        for offset, kind, names in ((1, "attention", ("qkv", "proj")), (2, "mlp", ("up", "down"))):
            unit = f"{2 * layer + offset:03}.{kind}"
            inner = 3 * width if kind == "attention" else 4 * width
            back = width if kind == "attention" else 4 * width
            norm(unit)
            add(f"{unit}/{names[0]}.weight", (width, inner), 0.02 * scale)
            add(f"{unit}/{names[0]}.bias", (inner,), 0)
            add(f"{unit}/{names[1]}.weight", (back, width), residual * scale)
            add(f"{unit}/{names[1]}.bias", (width,), 0)
    norm(f"{2 * layers + 1:03}.head")
    return weights


def forward(config, w, tokens):
    """Returns the logits [B,T,V]."""
    batch, length = tokens.shape
    width, heads = config["width"], config["heads"]

    def norm(x, unit):
        return F.layer_norm(x, (width,), w[f"{unit}/ln.weight"], w[f"{unit}/ln.bias"], 1e-5)

    def linear(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte"][tokens] + w["000.embedding/wpe"][:length]
    for layer in range(config["layers"]):
        unit = f"{2 * layer + 1:03}.attention"
        q, k, v = linear(norm(x, unit), f"{unit}/qkv").split(width, dim=2)
        q, k, v = (t.view(batch, length, heads, width // heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(y.transpose(1, 2).reshape(batch, length, width), f"{unit}/proj")
        unit = f"{2 * layer + 2:03}.mlp"
        u = F.gelu(linear(norm(x, unit), f"{unit}/up"), approximate="tanh")
        x = x + linear(u, f"{unit}/down")
    return norm(x, f"{2 * config['layers'] + 1:03}.head") @ w["wte"].T


def make_gradients():
    config = {"layers": 2, "width": 36, "heads": 3, "context": 13, "vocab": 61, "samples": 3}
    rng = np.random.default_rng(1)
    file = File("gradients", config)
    weights = initial_weights(config, rng, exercise=True)
    shape = (config["samples"], config["context"])
    tokens, targets = (rng.integers(0, config["vocab"], shape) for _ in range(2))
    targets[0, 3] = targets[2, 12] = -1  # ignored
    for name, tensor in weights.items():
        file.add(name, tensor)
    file.add("tokens", tokens)
    file.add("targets", targets)
    w = {name: tensor.double().requires_grad_() for name, tensor in weights.items()}
    logits = forward(config, w, torch.tensor(tokens))
    loss = F.cross_entropy(
        logits.flatten(0, 1), torch.tensor(targets).flatten(), ignore_index=-1)
    loss.backward()
    file.add("logits", logits)
    file.add("loss", loss.reshape(1))
    for name, tensor in w.items():
        file.add("grad " + name, tensor.grad)
    file.write()


def learning_rate(config, step):
    """Linear warm-up to the peak at step `warmup`, then half a cosine to min * peak at the end."""
    if step <= config["warmup"]:
        return config["lr"] * step / config["warmup"]
    progress = (step - config["warmup"]) / (config["steps"] - config["warmup"])
    low = config["min"]
    return config["lr"] * (low + (1 - low) * (1 + math.cos(math.pi * progress)) / 2)


def make_curve():
    config = {
        "layers": 2, "width": 64, "heads": 4, "context": 32, "vocab": 128, "samples": 8,
        "steps": 200, "lr": 3e-3, "warmup": 20, "min": 0.1, "beta1": 0.9, "beta2": 0.95,
        "eps": 1e-8, "weight_decay": 0.1, "clip": 1.0}
    rng = np.random.default_rng(2)
    file = File("curve", config)
    weights = initial_weights(config, rng, exercise=False)
    text = np.frombuffer(TEXT.encode(), dtype=np.uint8).astype(np.int32)
    steps, samples, context = config["steps"], config["samples"], config["context"]
    starts = rng.integers(0, len(text) - context, (steps, samples))
    for name, tensor in weights.items():
        file.add(name, tensor)
    file.add("text", text)
    file.add("starts", starts)

    losses, norms = train(config, weights, text, starts, lambda logits, batch: F.cross_entropy(
        logits.flatten(0, 1), batch[:, 1:].flatten()))
    file.add("losses", np.array(losses))
    file.add("norms", np.array(norms))
    file.write()
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}; largest gradient norm {max(norms):.3f}")


def train(config, weights, text, starts, loss_of):
    """Trains on the samples that begin at each row of `starts`; returns losses and gradient norms."""
    w = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
    matrices = [t for t in w.values() if t.dim() == 2]
    vectors = [t for t in w.values() if t.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": config["weight_decay"]},
         {"params": vectors, "weight_decay": 0.0}],
        betas=(config["beta1"], config["beta2"]), eps=config["eps"])
    losses, norms = [], []
    for step, at in enumerate(starts, 1):
        batch = torch.tensor(np.stack([text[s:s + config["context"] + 1] for s in at])).long()
        loss = loss_of(forward(config, w, batch[:, :-1]), batch)
        optimizer.zero_grad()
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(w.values(), config["clip"])))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config, step)
        optimizer.step()
        losses.append(loss.item())
    return losses, norms


def make_distillation():
    """Trains the model of curve.bin for 20 steps in float64 with a teacher: the same model, with
    larger matrices."""
    folder = pathlib.Path(__file__).parent
    index = json.loads((folder / "curve.json").read_text())
    data = (folder / "curve.bin").read_bytes()

    def tensor(name):
        entry = index["tensors"][name]
        return torch.frombuffer(bytearray(data), dtype=torch.int32 if entry["type"] == "i32" else torch.float32,
                                count=math.prod(entry["shape"]), offset=entry["offset"]).view(entry["shape"])

    config = index["config"]
    weights = {name: tensor(name).double() for name in index["tensors"]
               if name not in ("text", "starts", "losses", "norms")}
    settings = {"share": 0.6, "temperature": 2, "scale": 8, "steps": 20}
    teacher = {name: w * settings["scale"] if w.dim() == 2 else w for name, w in weights.items()}

    def loss_of(logits, batch):
        heat, share = settings["temperature"], settings["share"]
        taught = forward(config, teacher, batch[:, :-1])
        soft = F.kl_div(F.log_softmax(logits.flatten(0, 1) / heat, 1), F.log_softmax(taught.flatten(0, 1) / heat, 1),
                        log_target=True, reduction="batchmean")
        hard = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        return (1 - share) * hard + share * heat**2 * soft

    losses, norms = train(config, weights, tensor("text").numpy(), tensor("starts").numpy()[:settings["steps"]], loss_of)
    (folder / "distillation.json").write_text(json.dumps(settings | {"losses": losses, "norms": norms}, indent=1) + "\n")


if __name__ == "__main__":
    torch.manual_seed(0)
    for name in sys.argv[1:] or ("gradients", "curve", "distillation"):
        globals()[f"make_{name}"]()
