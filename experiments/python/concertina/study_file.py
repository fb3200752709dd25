"""The file of a study (study.toml): what varies between its trials, what it claims, and how it chooses trials.

`concertina study run` checks a study's file before it makes a folder; here it is read for what its results need.
"""
from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import pathlib
import re
import tomllib
import typing

from .errors import InputError
from .files import flat, read_bytes
from .results import SEED, Claim
from .texts import toml_text

Settings = dict[str, str]

_ARM, _RANKS = "arm", "ranks"  # keys of axes that are not config keys
_LEAST_ALPHA, _MOST_ALPHA, _MOST_MARGIN = 1e-6, 0.49, 1e9


@dataclasses.dataclass
class StudyFile:
    """`axes`: for each axis its keys, and the settings at each of its places."""
    name: str = ""
    bases: list[tuple[str, bytes]] = dataclasses.field(default_factory=list)  # path and text
    set: Settings = dataclasses.field(default_factory=dict)
    axes: list[tuple[list[str], list[Settings]]] = dataclasses.field(default_factory=list)
    draws: list[tuple[str, str, list]] = dataclasses.field(default_factory=list)  # key, kind, choices or ends
    drawn: tuple[int, int] = (0, 1)  # how many times, with which seed
    seeds: list[int] = dataclasses.field(default_factory=list)
    search: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    claim: Claim | None = None
    grown: list[list[int]] = dataclasses.field(default_factory=list)  # draws, values of axes and seeds that there were before

    @property
    def proposes(self) -> bool:
        """Whether a program proposes the trials, so that no axis is known."""
        return self.search.get("method") == "sampler"

    @property
    def keys(self) -> list[str]:
        """The keys that differ between trials; run.seed last."""
        return [draw[0] for draw in self.draws] + [key for keys, _ in self.axes for key in keys] + [SEED] * bool(self.seeds)

    @property
    def digest(self) -> str:
        """What all trials have in common: base files and [set]."""
        common = b"".join(b"%d %s\n" % (len(text), text) for _, text in self.bases)
        values = ((key, value.encode()) for key, value in self.set.items())
        return hashlib.sha256(common + b"".join(b"%s %d %s\n" % (key.encode(), len(value), value) for key, value in values)).hexdigest()

    def trials(self) -> list[Settings]:
        """The settings of all trials, in order: for each seed all draws, for each draw all places of the axes, the last fastest."""
        shapes = [*self.grown, [self.drawn[0], *(len(places) for _, places in self.axes), len(self.seeds)]]
        found = {tuple(settings.items()): settings for shape in shapes for settings in self._trials_of(shape)}
        return list(found.values())

    def _trials_of(self, shape: list[int]) -> typing.Iterator[Settings]:
        draws = _draws(self.draws, shape[0], self.drawn[1]) if self.draws else [{}]
        axes = [places[:size] for (_, places), size in zip(self.axes, shape[1:])]
        seeds: list[Settings] = [{SEED: str(seed)} for seed in self.seeds[:shape[-1]]] or [{}]
        for seed, draw, places in itertools.product(seeds, draws, itertools.product(*axes)):
            yield {key: value for some in (draw, *places, seed) for key, value in some.items()}

    def rung_steps(self, default_steps: typing.Callable[[], int]) -> list[int]:
        """The steps at which successive halving compares trials; empty for another method."""
        if self.search.get("method") != "asha":
            return []
        steps = int(self.trials()[0].get("run.steps") or self.set.get("run.steps") or self._base("run.steps") or default_steps())
        factor, rung, rungs = int(self.search.get("factor", 3)), int(self.search.get("min_steps", 0)), []
        while 0 < rung < steps and factor > 1:
            rungs.append(rung)
            rung *= factor
        return [*rungs, steps]

    def _base(self, key: str) -> typing.Any:
        found = [flat(tomllib.loads(text.decode())).get(key) for _, text in self.bases]
        return next((value for value in reversed(found) if value is not None), None)


def _setting(value: object) -> str:
    """The value as `--set KEY=VALUE` has it: text without quotes."""
    plain = isinstance(value, str) and value and not re.search("[\"'\\[\n]", value)
    return str(value) if plain else toml_text(value)


def _settings(table: dict) -> Settings:
    return {key: _setting(value) for key, value in flat(table).items()}


def _draws(draws: list[tuple[str, str, list]], count: int, seed: int) -> list[Settings]:
    random = _mt19937_64(seed)
    return [{key: _drawn(kind, ends, (next(random) >> 11) * 2.0 ** -53) for key, kind, ends in draws} for _ in range(count)]


def _drawn(kind: str, ends: list, share: float) -> str:
    if kind == "choice":
        return _setting(ends[int(share * len(ends))])
    low, high = ends
    whole = isinstance(low, int) and isinstance(high, int)
    top = high + whole  # so that each whole number is as likely
    value = low + share * (top - low) if kind == "uniform" else math.exp(math.log(low) + share * (math.log(top) - math.log(low)))
    if whole:
        return str(min(max(math.floor(value), low), high))
    return toml_text(min(max(float(f"{value:.3g}"), float(low)), float(high)))


def _mt19937_64(seed: int) -> typing.Iterator[int]:
    """std::mt19937_64, which neither Python nor numpy has. M. Matsumoto and T. Nishimura (1998)."""
    full = (1 << 64) - 1
    state = [seed & full]
    for i in range(1, 312):
        state.append((6364136223846793005 * (state[-1] ^ (state[-1] >> 62)) + i) & full)
    while True:
        for i in range(312):
            mixed = (state[i] & 0xFFFFFFFF80000000) | (state[(i + 1) % 312] & 0x7FFFFFFF)
            state[i] = state[(i + 156) % 312] ^ (mixed >> 1) ^ (0xB5026F5AA96619E9 if mixed & 1 else 0)
        for word in state:
            word ^= (word >> 29) & 0x5555555555555555
            word ^= (word << 17) & 0x71D67FFFEDA60000
            word ^= (word << 37) & 0xFFF7EEE000000000
            yield word ^ (word >> 43)


def _claim(table: dict, source: str) -> Claim:
    metric, margin, alpha, baseline = (table.get(key, usual) for key, usual in
                                       (("metric", ""), ("margin", 0), ("alpha", 0.05), ("baseline", "")))
    where = f"{source}: equivalence"
    if not metric or not isinstance(margin, (int, float)) or not 0 < margin <= _MOST_MARGIN:
        raise InputError("[equivalence] has no metric or no margin", where,
                         'metric = "validation_accuracy" and margin = 0.005, in the metric\'s own unit')
    if not isinstance(alpha, (int, float)) or not _LEAST_ALPHA <= alpha <= _MOST_ALPHA:
        raise InputError(f"alpha = {alpha} is not between {_LEAST_ALPHA} and {_MOST_ALPHA}", where, "alpha = 0.05")
    if not re.match("[^=]+=", baseline):
        raise InputError(f"the baseline '{baseline}' is not COLUMN=VALUE", where, 'baseline = "arm=static"')
    return Claim(metric, float(margin), float(alpha), [baseline])


def _axes(root: dict) -> typing.Iterator[tuple[list[str], list[Settings]]]:
    """[grid], [[zip]] and [[arm]], in the order of the file."""
    for section, value in root.items():
        if section == "grid":
            for key, values in flat(value).items():
                yield [key], [{key: _setting(one)} for one in values]
        elif section == "zip":
            for table in map(flat, value if isinstance(value, list) else [value]):
                yield list(table), [dict(zip(table, map(_setting, place))) for place in zip(*table.values())]
        elif section == _ARM:
            yield [_ARM], [{_ARM: _setting(arm["name"]), **_settings({key: one for key, one in arm.items() if key != "name"})}
                           for arm in value]


def _random(table: dict) -> list[tuple[str, str, list]]:
    """The draws of [random]: each key has one way to draw its values."""
    kinds = {key: value for key, value in flat(table).items() if key not in ("trials", "seed")}
    return [(*path.rpartition(".")[::2], ends) for path, ends in kinds.items()]


def parse_study(text: bytes, source: str, read_base: typing.Callable[[int, str], bytes]) -> StudyFile:
    """The study of a file's text. `read_base`: the text of its base file of this index, from 0, and path."""
    try:
        root = tomllib.loads(text.decode())
        study = StudyFile(root.get("name", ""), search=dict(root.get("search", {})), seeds=list(root.get("seeds", [])))
        paths = root.get("base", [])
        for index, path in enumerate([paths] if isinstance(paths, str) else paths):
            study.bases.append((path, read_base(index, path)))
        study.set = _settings(root.get("set", {})) | _settings(root.get("override", {}))
        study.axes, random = list(_axes(root)), root.get("random", {})
        study.draws, study.drawn = _random(random), (random.get("trials", 0), random.get("seed", 1))
        study.grown = root.get("grown", {}).get("from", [])
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise InputError(f"the study's file cannot be read: {error}", source, "concertina study run FILE --dry-run, which says "
                         "what is wrong") from error
    if "equivalence" in root:
        study.claim = _claim(root["equivalence"], source)
    return study


def read_study_file(path: str | pathlib.Path) -> StudyFile:
    """The study of a file, whose base files are relative to it, or of the folder of one that began, which has copies of them."""
    folder, file = pathlib.Path(path), pathlib.Path(path)
    if folder.is_dir():
        file = folder / "study.toml"
        if not file.exists():
            raise InputError("this is not the folder of a study: it has no study.toml", str(folder),
                             "the folder that `concertina study run` named, such as studies/NAME")
        return parse_study(read_bytes(file), str(file),
                           lambda index, base: read_bytes(folder / "base" / f"{index + 1}-{pathlib.PurePath(base).name}"))
    if not file.exists():
        raise InputError("there is no such file", str(file), "STUDY.toml names an existing study file")
    study = parse_study(read_bytes(file), str(file), lambda _, base: read_bytes(file.parent / base))
    study.name = study.name or file.stem
    return study
