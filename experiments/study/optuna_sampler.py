#!/usr/bin/env python3
"""A sampler for `concertina study run` that uses Optuna (TPE or CMA-ES).

    [search]
    method = "sampler"
    metric = "validation_loss"
    command = "python3 experiments/study/optuna_sampler.py --trials 20 optimizer.lr=log:1e-4:1e-2 \\
               model.width=choice:32,64,128 model.dropout=uniform:0:0.3"

Each argument is a config key and its range or choices; a range with integer ends contains only integers. An example to start from: any program in
any language that implements the protocol in the user's guide is a sampler. In the other direction, a study of Optuna can train with Concertina:

    def objective(trial):
        rate, name = trial.suggest_float("lr", 1e-4, 1e-2, log=True), f"trial{trial.number}"
        subprocess.run(["concertina", "train", "@run.toml", f"optimizer.lr={rate}", f"run.name={name}"], check=True)
        return json.load(open(f"runs/{name}/result.json"))["validation_loss"]

Its pruners can read the event "validation" in runs/NAME/events.jsonl while `concertina train` runs (eval.every)."""
import argparse
import json
import sys
import warnings

try:
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
except ImportError as error:
    sys.exit(f"optuna_sampler.py: cannot import optuna ({error})\n"
             "  try: apt-get install python3-optuna, or pip install optuna, then rerun the command")

FORMS = "KEY=uniform:LOW:HIGH, KEY=log:LOW:HIGH or KEY=choice:A,B,..."


def scalar(text):
    """Returns a number if the text is one, otherwise the text, as in tell messages."""
    try:
        return float(text) if set(text) & set(".eE") else int(text)
    except ValueError:
        return text


def dimension(text):
    """Returns ("optimizer.lr", its distribution) for "optimizer.lr=log:1e-4:1e-2"."""
    try:
        key, values = text.split("=", 1)
        kind, values = values.split(":", 1)
        if kind == "choice":
            return key, CategoricalDistribution([scalar(value) for value in values.split(",")])
        low, high = map(scalar, values.split(":"))
        if kind not in ("uniform", "log"):
            raise ValueError(f"unknown distribution '{kind}'")
        whole = isinstance(low, int) and isinstance(high, int)
        return key, (IntDistribution if whole else FloatDistribution)(low, high, log=kind == "log")
    except (ValueError, TypeError) as error:
        raise argparse.ArgumentTypeError(f"expected {FORMS}, got '{text}' ({error})")


def same_value(distribution, value):
    """Converts a tell message's value to a value of the distribution: 64.0 and "64" become its choice 64."""
    if isinstance(distribution, CategoricalDistribution):
        return next((c for c in distribution.choices if c == value or str(c) == str(value)), value)
    return int(value) if isinstance(distribution, IntDistribution) else float(value)


class Search:
    def __init__(self, space, options, goal):
        self.space, self.trials, self.seed, self.start = space, options.trials, options.seed, options.start
        self.sampler = options.sampler
        self.asked = {}  # running Optuna trials, by the study's trial number
        self.study = optuna.create_study(direction="minimize" if goal == "min" else "maximize")

    def ask(self, number):
        if number > self.trials:
            return {"done": True}
        # The seed depends on the trial, so that a stopped search does not repeat itself.
        tpe = {"constant_liar": True} if self.sampler == "tpe" else {}
        kind = optuna.samplers.TPESampler if self.sampler == "tpe" else optuna.samplers.CmaEsSampler
        self.study.sampler = kind(seed=self.seed + number, n_startup_trials=self.start, **tpe)
        trial = self.asked[number] = self.study.ask(self.space)
        return {"set": trial.params}

    def tell(self, number, state, metric, settings):
        counts = state in ("done", "stopped") and metric is not None
        ended, value = (optuna.trial.TrialState.COMPLETE, metric) if counts else (optuna.trial.TrialState.FAIL, None)
        if number in self.asked:
            self.study.tell(self.asked.pop(number), value, ended)
        elif self.space.keys() <= settings.keys():  # from an earlier launch
            params = {key: same_value(self.space[key], settings[key]) for key in self.space}
            self.study.add_trial(optuna.trial.create_trial(state=ended, value=value, params=params, distributions=self.space))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("space", nargs="+", type=dimension, metavar="KEY=VALUES", help=FORMS)
    parser.add_argument("--trials", type=int, required=True, help="total number of trials")
    parser.add_argument("--sampler", choices=["tpe", "cmaes"], default="tpe", help="Optuna's sampler (default: tpe; cmaes needs the package cmaes)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=10, help="number of random trials before the sampler's own (default: 10)")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    for line in sys.stdin:
        message = json.loads(line)
        if "study" in message:
            search = Search(dict(options.space), options, message["study"]["goal"])
        elif "ask" in message:
            print(json.dumps(search.ask(message["ask"]["trial"])), flush=True)
        elif "tell" in message:
            tell = message["tell"]
            search.tell(tell["trial"], tell["state"], tell["metric"], tell["set"])


if __name__ == "__main__":
    main()
