"""Runs the commands of experiments/results/catalogue.toml and appends entries: what experiments/results/measure.py does."""
import argparse
import datetime
import itertools
import math
import os
import signal
import statistics
import subprocess
import sys
import time

from results import HIGH_LOAD, RESULTS, TOP, Failed, append, busy_cores, cases, entries, filled, machine, missing, shell, values_of


def measure(name, case, spec, options, outputs):
    """Returns the entry of a case. `outputs` keeps the outputs of commands, which several cases may read."""
    words = {**case, **spec["tiny" if options.tiny else "full"], "data": options.data}
    command = filled(spec["command"], words)
    if command not in outputs:
        # The average at the beginning, as far as it still counts: later it contains the measurements themselves.
        load = max(options.load * math.exp((options.begin - time.monotonic()) / 60), busy_cores())
        if load > HIGH_LOAD:
            print(f"  warning: other programs are running (load {load:.1f}); the entry records it, and tables mark it", flush=True)
        code, out, err, seconds = shell(command, 300 + 600 * spec["minutes"])
        if code:
            raise Failed(f"exit code {code}: {command}\n{(err or out)[-2000:].strip()}")
        outputs[command] = round(load, 2), out, seconds
    load, out, seconds = outputs[command]
    facts = options.machine | ({"isa": case["isa"]} if case.get("isa", "native") != "native" else {})
    return {"name": name, "case": case, "command": filled(spec["command"], words | {"data": "DIR"}), **facts,
            "date": datetime.date.today().isoformat(), "load": load, "values": values_of(spec, out, seconds, words)}


def number(value):
    """Returns a value as one number, of several their median, or None if it is a text."""
    if isinstance(value, list):
        return statistics.median(value) if all(isinstance(one, float) for one in value) else None
    return value if isinstance(value, float) else None


def print_entry(entry):
    """Prints the values, and their ratios to those of the previous entry of the same kind of processor."""
    before = [one for one in entries(entry["name"]) if all(one[key] == entry[key] for key in ("case", "processor"))][-1:]
    for key, (value, unit) in entry["values"].items():
        text = f"  {key}: {value} {unit}".rstrip()
        old, new = number(before[0]["values"].get(key, [None])[0] if before else None), number(value)
        if old and new is not None:
            text += f" ({new / old:.2f} times that of {before[0]['date']}, {before[0]['commit']})"
        print(text, flush=True)


def brief(case):
    """Returns the values of a case, without commands."""
    return ", ".join(value for key, value in case.items() if key != "tool")


def chosen(names, error):
    """Returns name, case and spec of everything that the command line names."""
    found = []
    for name, *words in [name.split("/") for name in names or RESULTS]:
        some = [(name, case, spec) for case, spec in cases(RESULTS.get(name, {}))
                if all(any(word in value for value in case.values()) for word in words)]
        if names and not some:
            error(f"no measurement is named {'/'.join([name, *words])}; --list prints the names")
        found += some
    return found


def select(options, parser):
    """Returns what this machine can measure in time, and says once for each reason what it cannot."""
    ready, reasons, left, planned = [], {}, options.minutes, set()
    for name, case, spec in chosen(options.names, parser.error):
        reason = next(filter(None, (missing(need, options.data) for need in spec["needs"])), None)
        command = filled(spec["command"], case)
        if not reason and options.tiny and "tiny" not in spec:
            reason = "there is no tiny form"
        if not reason and command not in planned and not options.tiny:
            if spec["minutes"] > left:
                reason = f"it takes about {spec['minutes']:g} minutes, and {left:g} of --minutes {options.minutes:g} are left"
            else:
                left -= spec["minutes"]
        if not reason:
            planned.add(command)
            ready.append((name, case, spec))
        else:
            reasons.setdefault((name, reason), []).append(case)
    for (name, reason), some in reasons.items():
        print(f"not measured: {name}, {len(some)} of {len(list(cases(RESULTS[name])))} cases: {reason}")
    return ready


def print_list(some):
    """Prints the expected time and the command of each case."""
    for name, group in itertools.groupby(some, lambda one: one[0]):
        print(f"{name}: {RESULTS[name]['about']}")
        for _, case, spec in group:
            print(f"  {brief(case)}: about {spec['minutes']:g} minutes: {filled(spec['command'], {**case, **spec['full']})}")


def main(about):
    parser = argparse.ArgumentParser(prog="measure.py", description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure (default: everything)")
    parser.add_argument("--list", action="store_true", help="print the results, with their commands and times, and exit")
    parser.add_argument("--minutes", type=float, default=60, help="measure only what is expected to end within this time (default: 60)")
    parser.add_argument("--data", default="data", metavar="DIR", help="directory with mnist/ and sst2/ (default: data)")
    parser.add_argument("--tiny", action="store_true", help="run the smallest form of each command, print its values and record nothing")
    options = parser.parse_args()
    if options.list:
        return print_list(chosen(options.names, parser.error))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options.begin, options.load, options.machine = time.monotonic(), os.getloadavg()[0], machine()
    if options.machine["commit"] == "unknown" and not options.tiny:
        parser.error("the commit of the program is unknown: measure in a clone of the repository, or with --tiny")
    ready, outputs, measured, failed = select(options, parser), {}, 0, 0
    for number, (name, case, spec) in enumerate(ready, 1):
        print(f"[{number} of {len(ready)}] {name}: {brief(case)} (about {spec['minutes']:g} minutes)", flush=True)
        try:
            entry = measure(name, case, spec, options, outputs)
        except Failed as failure:
            failed += 1
            print(f"  error: {failure}", flush=True)
            continue
        except KeyboardInterrupt:
            failed += 1
            print("  interrupted", flush=True)
            break
        print_entry(entry)
        if not options.tiny:
            append(entry)
        measured += 1
    print(f"{measured} of {len(ready)} measured")
    if not options.tiny and measured:
        words = [sys.executable, TOP / "tests" / "guide_tables.py", TOP / "build" / "experiments" / "concertina"]
        failed += subprocess.run(words, check=False).returncode
    return int(failed > 0)
