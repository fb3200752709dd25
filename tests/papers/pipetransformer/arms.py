"""The arms of a reproduction of PipeTransformer (arms.toml), and a study file of them."""
import json
import pathlib
import tomllib

ALPHAS = [{"name": name, "alpha": share} for name, share in {"1/5": 1 / 5, "1/4": 1 / 4, "1/3": 1 / 3, "2/5": 2 / 5, "1/2": 1 / 2}.items()]
PAPER = pathlib.Path(__file__).resolve().parents[3] / "experiments" / "papers" / "pipetransformer"
TABLE = tomllib.loads((PAPER / "arms.toml").read_text(encoding="utf-8"))


def _entries(lists, each, layers, epochs):
    """Yields the numbers of the arms in a list of expected.json."""
    for one in lists.get(each, []):
        if each == "top_layers":
            yield {"layers": one[0], "epochs": one[1], "units": 1 + 2 * (layers - one[0]),
                   "end": f", {one[1]:g} epochs" if one[1] != epochs else ""}
        else:
            yield one if isinstance(one, dict) else {"epochs": one}


def arms_of(lists, layers, epochs, steps):
    """Returns each arm's keys by name, for a task's layers, the unfrozen run's epochs, steps per epoch, and
    `lists` of expected.json. `own_rates`: pairs of an arm and the learning rate of a variant of it."""
    lists, found = {"alphas": ALPHAS, **lists}, {}
    for form, arm in TABLE["arms"].items():
        for own in _entries(lists, arm["each"], layers, epochs) if "each" in arm else [{}]:
            numbers = {"epochs": epochs, "steps": steps, "last": layers - 1, "alpha": 1 / 3, **own}
            keys = {"run.steps": round(numbers["epochs"] * steps)}
            for part in (*(TABLE["sets"][name] for name in arm["sets"]), {key: arm[key] for key in arm if "." in key}):
                keys |= {key: numbers.get(value.strip("{}"), value) if isinstance(value, str) else value for key, value in part.items()}
            named = {name: f"{value:g}" if isinstance(value, (int, float)) else value for name, value in numbers.items()}
            found[form.format(**named) + own.get("end", "")] = keys
    return found | {f"{name}, lr {rate:g}": {**found[name], "optimizer.lr": rate} for name, rate in lists.get("own_rates", [])}


toml_value = json.dumps  # for strings, numbers, booleans and lists


def study_text(base, keys, arms, seeds, claim):
    """Returns the text of a study file. `claim`: the section [equivalence]."""
    parts = {"": {"base": base, "seeds": seeds}, "[set]": keys, "[equivalence]": claim}
    tables = [*parts.items(), *(("[[arm]]", {"name": name, **arm}) for name, arm in arms.items())]
    return "\n".join(f"{head}\n" + "".join(f"{key} = {toml_value(value)}\n" for key, value in table.items()) for head, table in tables).lstrip("\n")
