"""Published measurements: the catalogue and the data of experiments/results, values read from the output of commands, and tables.

Invariant: a table shows the newest entry of each case and kind of processor; an entry has all FIELDS.
"""
import functools
import itertools
import json
import math
import os
import pathlib
import re
import signal
import string
import subprocess
import sys
import time
import tomllib

TOP = pathlib.Path(__file__).resolve().parents[1]
HERE = TOP / "experiments" / "results"
CATALOGUE = tomllib.loads((HERE / "catalogue.toml").read_text(encoding="utf-8"))
RESULTS = {name: result for name, result in CATALOGUE.items() if "columns" in result}
FIELDS = ("name", "case", "command", "commit", "processor", "isa", "cores", "date", "load", "values")
OLD, HIGH_LOAD = 200, 0.5  # commits; busy cores


class Failed(Exception):
    """A measurement that has no values."""


def entries(name):
    path = HERE / "data" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def append(entry):
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in [*entries(entry["name"]), entry])
    (HERE / "data" / f"{entry['name']}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def cases(result):
    """Yields each case of a result, and the result with the keys that this case replaces."""
    for product in result.get("cases", []):
        own = {key: product[key] for key in ("command", "minutes") if key in product}
        own["needs"] = [*result["needs"], *product.get("needs", [])]
        own["values"] = product.get("values", {**result.get("values", {}), **product.get("more", {})})
        fields = {key: value for key, value in product.items() if isinstance(value, list) and key != "needs"}
        for values in itertools.product(*fields.values()):
            yield dict(zip(fields, values)), {**result, **own}


def filled(text, words):
    for key, value in words.items():
        text = text.replace(f"{{{key}}}", value)
    return text


def shell(command, seconds):
    """Runs a command in the shell that the documents describe. Returns its exit code, output, error messages and seconds."""
    begin = time.monotonic()
    with subprocess.Popen(["bash", "-c", f". experiments/env.sh\n{command}"], cwd=TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except BaseException as stop:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(stop, subprocess.TimeoutExpired):
                raise
            raise Failed(f"did not end within {seconds:.0f} s") from None
    return process.returncode, out, err, time.monotonic() - begin


def printed_json(out):
    """Returns the last JSON document that begins a line of the output."""
    lines = out.splitlines()
    for begin in reversed([at for at, line in enumerate(lines) if line.startswith("{")]):
        try:
            return json.loads("\n".join(lines[begin:]))
        except ValueError:
            pass
    raise Failed("no JSON was printed")


def read(source, out, seconds, words):
    """Reads a value: "seconds", "re:PATTERN" with one group, or a list of keys, of which NAME=VALUE selects an element of a list.
    In patterns and keys, {NAME} stands for a field of the case."""
    if source == "seconds":
        return seconds
    if isinstance(source, str):
        texts = re.findall(filled(source[3:], words), out, re.M)
        found = [text if re.search("[^0-9.,+-]", text) else float(text.replace(",", "")) for text in texts]
        return found[0] if len(found) == 1 else found or None
    value = printed_json(out)
    for key in source:
        if isinstance(value, list) and isinstance(key, str):
            name, _, wanted = filled(key, words).partition("=")
            value = next(one for one in value if str(one[name]) == wanted)
        else:
            value = value[filled(key, words) if isinstance(key, str) else key]
    return value


def values_of(spec, out, seconds, words):
    """Returns {name: [value, unit]}. A spec's value is [source, unit], or [source, unit, divisor] with a number or another source."""
    found = {}
    for name, (source, unit, *divisor) in spec["values"].items():
        try:
            value = read(source, out, seconds, words)
            if divisor:
                by = divisor[0] if isinstance(divisor[0], (int, float)) else read(divisor[0], out, seconds, words)
                value = [one / by for one in value] if isinstance(value, list) else value / by
        except (LookupError, TypeError, StopIteration, ZeroDivisionError) as error:
            raise Failed(f"cannot read {name} ({source}): {type(error).__name__} {error}") from None
        if value is None or value == "" or isinstance(value, float) and not math.isfinite(value):
            raise Failed(f"cannot read {name} ({source}): found {value}")
        found[name] = [value if isinstance(value, (str, bool)) else rounded(value), unit]
    return found


def rounded(value):
    return [rounded(one) for one in value] if isinstance(value, list) else float(f"{value:.5g}")


def processor():
    info = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0], re.M))
    vendor, family, model = (info.get(key, "") for key in ("vendor_id", "cpu family", "model"))
    brand = re.sub(r"\(R\)| \d.*| [Pp]rocessor.*", "", info.get("model name", os.uname().machine))
    kind = CATALOGUE["processors"].get(f"{vendor} {family} {model}")
    return f"{brand} ({kind})" if kind else f"{brand} {family}-{model}".rstrip(" -")


def busy_cores():
    """Returns how many cores are busy during one second."""
    def times():
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text(encoding="utf-8").split("\n")[0].split()[1:9]]
        return sum(fields) - fields[3] - fields[4]
    before = times()
    time.sleep(1)
    return (times() - before) / os.sysconf("SC_CLK_TCK")


def machine():
    """Returns the fields of an entry that describe the program and the machine."""
    program = TOP / "build" / "experiments" / "concertina"
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False) if program.exists() else None
    built = done and re.search(r"\(([0-9a-f]+(?:-dirty)?)", done.stdout)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=TOP, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    commit = built[1] if built else head
    if not head.startswith(commit):
        print(f"warning: the program is that of commit {commit}, and the checkout is at {head[:8]}: run ninja -C build first", file=sys.stderr)
    isa = re.search(r"(\w+) loops", done.stdout) if done else None
    return {"commit": commit if "dirty" in commit else commit[:8], "processor": processor(), "isa": isa[1] if isa else "", "cores": os.cpu_count()}


@functools.cache
def missing(need, data):
    """Returns what a requirement of the catalogue lacks on this machine, or None."""
    row = CATALOGUE["needs"][need]
    return filled(row["missing"], {"data": data}) if shell(filled(row["test"], {"data": data}), 60)[0] else None


@functools.cache
def has_history():
    """Returns whether commits can be counted: not in an archive or a shallow clone."""
    done = subprocess.run(["git", "rev-parse", "--is-shallow-repository"], cwd=TOP, capture_output=True, text=True, check=False)
    return done.stdout.strip() == "false"


@functools.cache
def is_old(commit):
    """Returns whether a commit is more than OLD commits behind, or not in the history."""
    done = subprocess.run(["git", "rev-list", "--count", f"{commit}..HEAD"], cwd=TOP, capture_output=True, text=True, check=False)
    return done.returncode != 0 or int(done.stdout) > OLD


def current(name):
    """Returns the newest entry of each case and processor, in the order of the catalogue."""
    newest = {(*entry["case"].values(), entry["processor"]): entry for entry in entries(name)}
    order = [case for case, _ in cases(RESULTS[name])]
    return sorted(newest.values(), key=lambda entry: order.index(entry["case"]) if entry["case"] in order else len(order))


class Cell(string.Formatter):
    """Formats the values of an entry: several numbers as "least to largest", and nothing where a value is absent."""

    def format_field(self, value, format_spec):
        if isinstance(value, list) and format_spec:
            ends = [format(one, format_spec) for one in (min(value), max(value))]
            return " to ".join(dict.fromkeys(ends))
        if isinstance(value, (bool, str)):
            return {True: "yes", False: "no"}.get(value, value)
        return format(value, format_spec)

    def show(self, pattern, entry):
        words = {key: value for key, (value, _) in entry["values"].items()} | entry["case"]
        words |= {"isa": entry["isa"], "command": entry["command"]}
        fields = {field for _, field, _, _ in self.parse(pattern) if field}
        return self.vformat(pattern, (), words) if fields <= words.keys() else ""


def marks_of(entry, before):
    """Returns "†" for an old entry, "‡" for one that was measured beside other programs. `before`: the table as it is, whose marks stay
    where there is no history."""
    old = is_old(entry["commit"]) if has_history() else f"`{entry['commit']}` †" in before
    return (" †" if old else "") + (" ‡" if (entry["load"] or 0) > HIGH_LOAD else "")


def measured_on(entry, before):
    kind = re.search(r"\((.*)\)", entry["processor"])
    return f"{kind[1] if kind else entry['processor']}, `{entry['commit']}`{marks_of(entry, before)}"


def with_legend(table):
    legend = [f"† Measured more than {OLD} commits ago."] * ("†" in table) + ["‡ Other programs were running."] * ("‡" in table)
    return table + ("\n" + " ".join(legend) + "\n" if legend else "")


def table_of(headings, rows, edge="|"):
    lines = [edge.lstrip() + edge.join(row) + edge.rstrip() for row in (headings, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(headings), *lines[1:]]) + "\n"


def headline(before):
    """Returns README's table: each row shows the current entries that its words name, the newest first."""
    rows = []
    for row in CATALOGUE["headline"]["rows"]:
        name, *words = row["pick"]
        found = sorted((entry for entry in current(name) if all(word in entry["case"].values() for word in words)),
                       key=lambda entry: entry["date"], reverse=True)
        rows.append([row["what"], "; ".join(f"{Cell().show(row['show'], entry)} ({measured_on(entry, before)})" for entry in found)])
    return with_legend(table_of(["measured", "result (processor, commit)"], rows, " | "))


def table(name, before):
    """Returns the table of a result. `before`: the text that it replaces."""
    if name == "headline":
        return headline(before)
    result = RESULTS[name]
    measured = current(name)
    rows = [[Cell().show(pattern, entry) for pattern in result["columns"].values()] + [measured_on(entry, before)] for entry in measured]
    if "{command}" in "".join(result["columns"].values()):  # a list of commands is complete
        for case, spec in cases(result):
            if all(entry["case"] != case for entry in measured):
                entry = {"case": case, "values": {}, "isa": "", "command": filled(spec["command"], {**case, **spec["full"], "data": "DIR"})}
                rows.append([Cell().show(pattern, entry) for pattern in result["columns"].values()] + ["not measured yet"])
    if not rows:
        return "Not measured yet.\n"
    return table_of([*result["columns"], "processor, commit"], rows) + f"\nCommand: `{shown_command(result).strip()}`.\n"


def shown_command(result):
    """Returns the command of a result, with the fields of its cases in capitals."""
    case, spec = next(cases(result))
    return result.get("shown") or filled(spec["command"], {**{key: key.upper() for key in case}, **spec["full"], "data": "DIR"})


def entry_faults(name, entry):
    """Yields what is wrong with an entry of data/NAME.json."""
    if tuple(entry) != FIELDS:
        yield f"has the fields {', '.join(entry)}; wanted: {', '.join(FIELDS)}"
        return
    units = {key: unit for _, spec in cases(RESULTS.get(name, {})) for key, (_, unit, *_) in spec["values"].items()}
    for key, (value, unit) in entry["values"].items():
        if units.get(key) != unit:
            yield f"has {key} in {unit!r}; the catalogue has it in {units.get(key)!r}"
        if any(isinstance(one, (int, float)) and not math.isfinite(one) for one in (value if isinstance(value, list) else [value])):
            yield f"has the value {value} for {key}"
    if entry["name"] != name or not entry["values"] or not entry["command"]:
        yield "has another name, no values or no command"
    if not re.fullmatch(r"[0-9a-f]{7,12}(-dirty)?", entry["commit"]) or not re.fullmatch(r"\d{4}-\d\d-\d\d", entry["date"]):
        yield f"has the commit {entry['commit']} and the date {entry['date']}"


QUANTITY = re.compile(r"[0-9.]+(?: times|x| ?%| (?:points|percent|tokens/s|ms|s|seconds|minutes|hours|[kMGT]i?B(?:/s)?|GFLOP/s))(?![\w-])")


def stray_numbers(text):
    """Returns measured quantities of a page that no table of a result has."""
    prose = re.sub(r"<!-- table: .*?<!-- end of table -->|^```.*?^```|<[^>]*>", "", text, flags=re.S | re.M)
    return QUANTITY.findall(prose)


def data_faults():
    """Returns what is wrong with the entries."""
    return [f"{path.relative_to(TOP)}: entry {number} {what}" for path in sorted((HERE / "data").glob("*.json"))
            for number, entry in enumerate(entries(path.stem), 1) for what in entry_faults(path.stem, entry)]


def page_faults(shown):
    """Returns the results that no page shows, and README's numbers that are no results. `shown`: the tables of the pages."""
    found = [f"catalogue.toml: no page has a table of {name}" for name in RESULTS if f"result {name}" not in shown]
    found += [f"README.md: {number!r} is in no table of results" for number in stray_numbers((TOP / "README.md").read_text(encoding="utf-8"))]
    return found
