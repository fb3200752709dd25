"""The arms of a reproduction of PipeTransformer, as a study's file: each is a set of keys beside the
fine-tuning of a task. Pure: no files, no processes."""
import json

ALPHAS = {"1/5": 1 / 5, "1/4": 1 / 4, "1/3": 1 / 3, "2/5": 2 / 5, "1/2": 1 / 2}

# The table that the released program goes by in place of its rule, for 12 layers:
# freeze/auto_freeze.py of Distributed-AI/PipeTransformer.
PAPERS_TABLE = ["epoch 1: 6", "epoch 3: 8", "epoch 6: 10", "epoch 8: 12"]

GPIPE = {"parallel.pp": 2, "parallel.schedule": "gpipe"}
REPLICAS = {"parallel.pp": 1, "parallel.dp": 2}
STILL = {"elastic.policy": "none"}
MOVES = {"elastic.policy": "predicted"}
CACHE = {"cache.memory": "1GiB"}


class Task:
    """What the arms need of a task: layers, epochs of the unfrozen run, steps of an epoch."""

    def __init__(self, layers, epochs, steps):
        self.layers, self.epochs, self.steps = layers, epochs, steps

    def length(self, epochs):
        return {"run.steps": round(epochs * self.steps)}


def policy(task, name, **options):
    """A freeze policy that leaves the last layer to train."""
    return {"freeze.policy": name, "freeze.max": task.layers - 1, **{f"freeze.{key}": value for key, value in options.items()}}


def rule(task, alpha):
    """The paper's rule, equation 1, rounded up as its released program does."""
    return policy(task, "pipetransformer", alpha=alpha, rounding="ceil")


def static_arms(task, shorter):
    """Runs without freezing: on the paper's pipeline, on replicas, and with schedules of their own that
    end after so many epochs."""
    whole = task.length(task.epochs)
    arms = {"static gpipe": {**GPIPE, **whole}, "static": {**REPLICAS, **whole}}
    for epochs in shorter:
        arms[f"static, {epochs:g} epochs"] = {**REPLICAS, **task.length(epochs)}
    return arms


def ladder_arms(task, alpha):
    """Freezing alone on the static pipeline, then with cuts that move, with replicas, with the cache:
    the same bits, in less and less time."""
    base = {**GPIPE, **task.length(task.epochs), **rule(task, alpha)}
    cuts = {"elastic.depth": False, "elastic.replicas": False, "elastic.schedule": False}
    return {"ladder: freeze": {**base, **STILL}, "ladder: + repack": {**base, **MOVES, **cuts},
            "ladder: + replicas": {**base, **MOVES}, "ladder: + cache": {**base, **MOVES, **CACHE}}


def top_arms(task, tops):
    """The top layers alone from the start, cached, on replicas. `tops`: pairs of layers and epochs; where
    there are fewer epochs than the unfrozen run has, the schedule is as short."""
    arms = {}
    for layers, epochs in tops:
        name = f"top {layers} layers" + (f", {epochs:g} epochs" if epochs != task.epochs else "")
        arms[name] = {**REPLICAS, **task.length(epochs), **CACHE, "freeze.units": 1 + 2 * (task.layers - layers)}
    return arms


def freezing_arms(task, shorter=()):
    """Policies, each with the cache and a layout policy that may move. They begin on replicas, which that
    policy would choose first and keeps on two ranks. `shorter`: epochs of runs by the rule at alpha 1/3 whose
    schedule ends sooner."""
    arms, whole = {}, {**REPLICAS, **task.length(task.epochs), **MOVES, **CACHE}
    for name, alpha in ALPHAS.items():
        arms[f"alpha {name}"] = {**whole, **rule(task, alpha)}
    for epochs in shorter:
        arms[f"alpha 1/3, {epochs:g} epochs"] = {**whole, **task.length(epochs), **rule(task, ALPHAS["1/3"])}
    arms["paper's table"] = {**whole, "freeze.policy": "list", "freeze.at": PAPERS_TABLE}
    for name in ("linear", "autofreeze", "plasticity"):
        arms[name] = {**whole, **policy(task, name)}
    arms["weights-only"] = {**GPIPE, **task.length(task.epochs), "freeze.policy": "weights-only", "freeze.skip_from": task.steps}
    return arms


def papers_arms(task, alpha):
    """What the paper changes besides freezing, each by itself: a batch that grows with the replicas, and a
    learning rate that begins anew each epoch, without freezing and with it."""
    length = task.length(task.epochs)
    restarts = {"lr.schedule": "cosine-restarts", "lr.cosine-restarts.cycles": task.epochs, "lr.cosine-restarts.growth": 1.0}
    return {"growing batch": {**GPIPE, **length, **MOVES, **CACHE, **rule(task, alpha), "elastic.batch": "grows"},
            "static, restarts": {**REPLICAS, **length, **restarts},
            "alpha, restarts": {**REPLICAS, **length, **MOVES, **CACHE, **rule(task, alpha), **restarts}}


def with_rates(arms, rates):
    """The arms that `rates` names, each with its learning rate in place of the task's."""
    return {f"{name}, lr {rate:g}": {**arms[name], "optimizer.lr": rate} for name, rate in rates}


toml_value = json.dumps  # of texts, numbers, truth values and lists


def study_text(base, keys, arms, seeds, claim):
    """The text of a study's file. `claim`: of [equivalence]."""
    lines = [f"base = {toml_value(base)}", f"seeds = {toml_value(seeds)}", "", "[set]"]
    lines += [f"{key} = {toml_value(value)}" for key, value in keys.items()]
    lines += ["", "[equivalence]"] + [f"{key} = {toml_value(value)}" for key, value in claim.items()]
    for name, arm in arms.items():
        lines += ["", "[[arm]]", f"name = {toml_value(name)}"]
        lines += [f"{key} = {toml_value(value)}" for key, value in arm.items()]
    return "\n".join(lines) + "\n"
