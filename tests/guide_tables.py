#!/usr/bin/env python3
"""Rewrites the tables in the documents that the program can generate.

  tests/guide_tables.py build/experiments/concertina           rewrites the tables that differ
  tests/guide_tables.py build/experiments/concertina --check   names them, exit code 1

A table is between "<!-- table: NAME WORD... -->" and "<!-- end of table -->" in a page. This script writes
the rows and the columns that it can generate, and keeps the other columns of each row. A new row gets "?"
there; --check then fails until someone replaces it with a description. A table "result NAME" shows the data of experiments/results,
which are checked as well.
"""
import json
import pathlib
import re
import subprocess
import sys

import results

TOP = pathlib.Path(__file__).resolve().parents[1]
PAGES = [*sorted((TOP / "experiments/guide").glob("*.md")), *(TOP / name for name in (
    "README.md", ".github/ARTIFACT.md", "experiments/README.md", "experiments/results/README.md", "parallel/README.md"))]
TABLE = re.compile(r"(<!-- table: (.*?) -->\n)(.*?)(<!-- end of table -->)", re.S)

# How a table writes what --help-config says of a key's values.
NOTATION = [(r"\btrue or false", "bool"), (r"^one of: ", ""), (r"^a size .*", "size or 0"), (r"\ban? ", ""),
            (r"\binteger", "int"), (r"\bnumber", "float"), (r" from (\S+) to \d{7,}", r" >= \1"),
            (r" from (\S+) to (\S+)", r" in [\1, \2]"), (r" >= (\S+) and < (\S+)", r" in [\1, \2)"),
            (r" > (\S+) and <= (\S+)", r" in (\1, \2]"), (r"the path of file or folder", "a path")]


class Source:
    """What the program and its sources say. A table is a list of rows, each {heading: cell}; the
    cell of the first heading identifies the row."""

    def __init__(self, program):
        self.program = program
        self.keys = {}  # table -> [(key, default, meaning, values)]
        table = None
        for line in self.ask("--help-config").splitlines():
            if line.startswith("["):
                table = self.keys.setdefault(line.strip("[]"), [])
            elif line.startswith("      "):
                table[-1].append(line.strip())
            elif line.startswith("  "):
                table.append(line.strip().split(" = ", 1))

    def ask(self, *words):
        return subprocess.run([self.program, *words], check=True, capture_output=True, text=True).stdout

    def keys_of(self, table):
        """The keys of a config table, in the notation that keys.md explains."""
        rows = []
        for key, default, meaning, values in self.keys[table]:
            for said, short in NOTATION:
                values = re.sub(said, short, values)
            meaning = meaning.removeprefix(key.partition(".")[0] + ": ") if "." in key else meaning
            rows.append({"key": f"`{key}`", "default": f"`{default}`", "meaning": meaning.replace("<", "&lt;"), "values": values})
        return rows

    def choices(self, key):
        """The values of a config key that selects an entry, with the keys that only that entry reads."""
        table, name = key.split(".")
        values = next(row[3] for row in self.keys[table] if row[0] == name)
        values = values.removeprefix("one of: ").split(", ")
        own = {value: [] for value in values}
        for option, _, meaning, _ in self.keys[table]:
            of = re.match(r"([a-z0-9-]+): ", meaning)
            if of and of[1] in own:
                own[of[1]].append(f"`{option}`")
        return [{f"`{key}`": f"`{value}`", "keys of its own": ", ".join(own[value])} for value in values if not value.startswith("or ")]

    def schedules(self):
        """The schedules, as listed by `schedule list`."""
        entries = json.loads(self.ask("schedule", "list", "--json"))["entries"]
        return [{"`parallel.schedule`": f"`{name}`", "about": entry["about"],
                 "idle over ideal": entry.get("bubble") or "", "saves at most": entry.get("peak_microbatch_stages") or ""}
                for name, entry in entries.items()]

    def machine(self, *structs):
        """The keys of a machine file, from the tables that read it."""
        text = (TOP / "experiments/predict/machine_file.cc").read_text()
        keys = [key for of in structs for key in re.findall(r'Number<%s>\{"(\w+)"' % of, text)]
        if "MachineModel" in structs:
            keys += re.findall(r'"(\w+_per_host)"', text)
            keys += ["compared", "factors", "local", "remote", "pair"]
        return [{"key": f"`{key}`"} for key in dict.fromkeys(keys)]

    def metrics(self):
        """The metrics of a step."""
        text = re.sub(r"\s+", " ", (TOP / "io/step_metrics.inc").read_text().partition("#endif\n\n")[2])
        rows = re.findall(r'(NUMBER|OPTIONAL|TEXT)\((?:[\w:]+, )?(\w+), (.*?)"([^"]*)"\)', text)
        found = []
        for kind, name, middle, meaning in rows:
            unit, better = re.search(r'"([^"]*)", (\w+),', middle).groups() if kind != "TEXT" else ("", "")
            found.append({"metric": f"`{name}`", "unit": unit, "better": better, "meaning": meaning})
        return found

    def environment(self):
        """The variables that the program reads or sets."""
        names = {}
        for folder in ("core", "parallel", "models", "io", "experiments"):
            for path in sorted((TOP / folder).rglob("*.cc")):
                for name in re.findall(r'(?:getenv|variable_of)\(\s*"([A-Z_]+)"', path.read_text()):
                    names[name] = True
        names.pop("PATH", None)  # set by the system
        return [{"variable": f"`{name}`"} for name in sorted(names)]

    def rooms(self, top):
        """The folders below `top`."""
        rows = []
        for line in (TOP / "tests/rooms.txt").read_text().splitlines():
            room = line.partition(":")[0]
            if line.startswith("#") or not line or (room + "/").split("/")[0] != top or room == top == "experiments":
                continue
            rows.append({"room": f"`{room.removeprefix(top + '/')}/`"})
        return rows


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def written(rows, old):
    """Formats `rows` like the table `old`, and keeps the other columns of `old`."""
    lines = old.strip().splitlines()
    headings = cells(lines[0])
    kept = {cells(line)[0]: dict(zip(headings, cells(line))) for line in lines[2:]}
    out = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    for row in rows:
        name = row[headings[0]]
        before = kept.get(name, {})
        fields = [row[h] if h in row else before.get(h, "?") for h in headings]
        out.append(("| " + " | ".join(fields) + " |").replace("|  |", "| |").replace("|  |", "| |"))
    return "\n".join(out) + "\n"


def main(program, *options):
    source, faults, seen, shown = Source(str(pathlib.Path(program).resolve())), [], 0, set()
    if wrong := results.data_faults():
        print("\n".join(wrong))
        return True

    def renew(page, found):
        nonlocal seen
        seen += 1
        name, *words = found[2].split()
        table = results.table(*words, found[3]) if name == "result" else written(getattr(source, name)(*words), found[3])
        where = f"{page.relative_to(TOP)}: table: {found[2]}"
        if table != found[3] and options:
            faults.append(f"{where}: differs from {'its data' if name == 'result' else 'what the program says'}; run tests/guide_tables.py to update it")
        if "| ? |" in table:
            faults.append(f"{where}: a cell has to be written by hand: {table[:table.index('| ? |')].splitlines()[-1]}")
        return found[1] + table + found[4]

    for page in PAGES:
        text = page.read_text()
        new = TABLE.sub(lambda found: renew(page, found), text)
        if new != text and not options:
            page.write_text(new)
        shown.update(found[2] for found in TABLE.finditer(text))
    if not seen:
        faults.append("no page has a table")
    faults += results.page_faults(shown)
    if not results.has_history():
        print("skipped: the ages of measurements, which need the history of commits")
    print("\n".join(faults) or f"{seen} tables are up to date")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
