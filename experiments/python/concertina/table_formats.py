"""Formats the table of a study as text, Markdown, LaTeX, HTML, CSV or JSON. Markup is well-formed for any names, values and errors."""
import csv
import html
import io
import itertools
import re
import typing

from .names import counted, digits_for, metric_named, number_text, plain, settings_text, text_table, trials_text
from .results import Runs
from .statistic import Summary
from .study_claims import claim_lines, equivalence_json, equivalence_rows
from .study_table import StudyTable, TableCell, TableRow

FORMATS = ("text", "csv", "markdown", "latex", "html")
CELLS = ("mean-sd", "mean-ci", "difference", "full")
_MOST_COLUMNS = 140  # characters per line of text

Grid = list[list[list[str]]]  # rows of cells, each with some lines


def _printable(text: str) -> str:
    """Replaces control characters, which would break the line or the document, with spaces."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", text)


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]$~&^#])", r"\\\1", _printable(text))


_LATEX = str.maketrans({
    "\\": "\\textbackslash{}", "|": "\\textbar{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "$<$", ">": "$>$",
    "±": "$\\pm$", "Δ": "$\\Delta$", "↓": "$\\downarrow$", "↑": "$\\uparrow$", "−": "$-$", **{c: f"\\{c}" for c in "&%$#_{}"},
    **{c: f"{{{c}}}" for c in "[]*"}})  # [ or * after the end of a row would be parsed as its options


def _latex(text: str) -> str:
    return _printable(text).translate(_LATEX)


def _html(text: str) -> str:
    return html.escape(re.sub(r"[\x00-\x08\x0b-\x1f]", "?", text)).replace("&#x27;", "&#39;")


def _text_table(head: list[str], rows: Grid, left: int) -> str:
    """Columns that do not fit are printed below the others, after the first columns are repeated."""
    grid = [[[name] for name in head], *rows]
    widths = [max(len(line) for cell in column for line in cell) for column in zip(*grid)]
    blocks: list[str] = []
    c = left
    while not blocks or c < len(head):
        columns = list(range(left))
        while c < len(head) and (len(columns) == left or sum(widths[one] + 2 for one in [*columns, c]) <= _MOST_COLUMNS + 2):
            columns, c = [*columns, c], c + 1
        lines = [line for row in grid for line in itertools.zip_longest(*(row[at] for at in columns), fillvalue="")]
        blocks.append(text_table(lines, left))
    return "\n".join(blocks)


def _markdown_table(head: list[str], rows: Grid, left: int) -> str:
    lines = [head, ["---" if c < left else "---:" for c in range(len(head))], *(map("<br>".join, row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _latex_table(head: list[str], rows: Grid, left: int) -> str:
    text = f"\\begin{{tabular}}{{{'l' * left}{'r' * (len(head) - left)}}}\n\\toprule\n{' & '.join(head)} \\\\\n\\midrule\n"
    for row in rows:
        first, *rest = itertools.zip_longest(*row, fillvalue="")
        lines = [first, *([f"{{\\scriptsize {cell}}}" if cell else "" for cell in line] for line in rest)]
        text += " \\\\*\n".join(map(" & ".join, lines)) + " \\\\\n"  # the lines of a group stay on one page
    return text + "\\bottomrule\n\\end{tabular}\n"


def _html_table(head: list[str], rows: Grid, left: int) -> str:
    def row_of(tag: str, cells: typing.Iterable[str]) -> str:
        looks = [' class="group"'] * left + [""] * len(head)
        return "<tr>" + "".join(f"<{tag}{look}>{cell}</{tag}>" for look, cell in zip(looks, cells)) + "</tr>\n"

    body = (row_of("td", (cell[0] + "".join(f"<small>{line}</small>" for line in cell[1:]) for cell in row)) for row in rows)
    return f'<div class="wide"><table class="study">\n{row_of("th", head)}{"".join(body)}</table></div>\n'


class _Form(typing.NamedTuple):
    """The markup of a format: how it escapes text, marks the best value, and writes tables and notes (before, each, after)."""
    escape: typing.Callable[[str], str]
    best: str
    table: typing.Callable[[list[str], Grid, int], str]
    notes: tuple[str, str, str]


_FORMS = {
    "text": _Form(str, "> {}", _text_table, ("", "{}\n", "")),
    "markdown": _Form(_markdown, "**{}**", _markdown_table, ("", "- {}\n", "")),
    "latex": _Form(_latex, "\\textbf{{{}}}", _latex_table, ("% \\usepackage{booktabs}; move these lines to the caption.\n{\\footnotesize\n",
                                                            "\\par\\noindent {}\n", "\\par}\n")),
    "html": _Form(_html, "<b>{}</b>", _html_table, ('<ul class="note">\n', "<li>{}</li>\n", "</ul>\n"))}


class _Column:
    """The cells of a metric, all with the same number of digits."""

    def __init__(self, table: StudyTable, at: int, kind: str):
        self._table, self._kind, self._factor, self._digits = table, kind, table.metrics[at].factor, table.digits(at)
        moved = [one for row in table.rows if (one := row.cells[at].difference)]
        self._moved = digits_for([self._factor * one.difference for one in moved], [self._factor * (one.half_width or 0) for one in moved])

    def lines(self, row: TableRow, cell: TableCell) -> list[str]:
        """Mean and deviation; the interval; the difference from the baseline."""
        summary, star = cell.summary, " *" if self._table.significant(cell.p) else ""
        if not summary.n:
            return [f"never in {cell.never} of {len(row.group.done)}" if cell.never else "NaN" if summary.nan
                    else "infinite" if summary.infinite else "—"]
        first, lines, half = self._number(summary.mean), [], summary.half_width or 0
        ends = f"[{self._number(summary.mean - half)} to {self._number(summary.mean + half)}]"
        if self._kind == "mean-ci" and summary.half_width is not None:
            first += f" {ends}"
        elif summary.sd is not None:
            first += " ± " + ("0" if summary.sd == 0 else self._number(summary.sd))
        if self._kind == "full" and half > 0:
            lines.append(ends)
        if cell.difference and self._kind in ("difference", "full"):
            p = "" if cell.p is None else ", p < 0.001" if cell.p < 0.001 else f", p {cell.p:.2g}"
            sign = "+" if cell.difference.difference > 0 else ""
            lines.append(f"Δ {sign}{self._number(cell.difference.difference, self._moved)}{p}{star}")
        elif self._kind in ("mean-sd", "mean-ci"):
            first += star
        return [first + (f" (n {summary.n})" if summary.n != len(row.group.done) else ""), *lines]

    def _number(self, value: float, digits: typing.Any = None) -> str:
        return number_text(self._factor * value, digits or self._digits)


def _grid(table: StudyTable, form: _Form, kind: str) -> tuple[list[str], Grid]:
    """Returns head and rows."""
    arrows = {"lower": " ↓", "higher": " ↑", None: ""}
    head = [metric_named(column).title for column in table.by or ["group"]] + ["n"]
    head += [metric.title + arrows[metric.better] for metric in table.metrics]
    columns, rows = [_Column(table, at, kind) for at in range(len(table.metrics))], []
    for row in table.rows:
        first = [[form.escape(value or "(none)")] for value in row.group.values] if table.by else [["all"]]
        first[0] += ["(baseline)"] * row.baseline
        cells = [list(map(form.escape, column.lines(row, cell))) for column, cell in zip(columns, row.cells)]
        for lines, cell in zip(cells, row.cells):
            lines[0] = form.best.format(lines[0]) if cell.best else lines[0]
        rows.append([*first, [str(len(row.group.done))], *cells])
    return list(map(form.escape, head)), rows


def _csv(table: StudyTable) -> str:
    """Only the rows, with all digits."""
    text, names = io.StringIO(), ["n", *TableCell(Summary()).numbers()]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*table.by, "n", "not_done", *(f"{metric.name}_{name}" for metric in table.metrics for name in names)])
    for row in table.rows:
        numbers = (one for cell in row.cells for one in (cell.summary.n, *cell.numbers().values()))
        writer.writerow([*row.group.values, len(row.group.done), len(row.group.others), *("" if one is None else plain(one) for one in numbers)])
    return text.getvalue()


def default_cells(format_: str) -> str:
    """The full cells for text; the mean and deviation for other formats."""
    return "full" if format_ == "text" else "mean-sd"


def table_text(table: StudyTable, format_: str = "text", cells: str = "") -> str:
    """The table with notes and unfinished trials, in one of FORMATS with one of CELLS; CSV contains only the rows."""
    if format_ == "csv":
        return _csv(table)
    form, kind = _FORMS[format_], cells or default_cells(format_)
    done = sum(len(row.group.done) for row in table.rows)
    summary = (f"{'' if table.loose else 'study '}{table.study}: {counted(len(table.rows), 'group')}, {done} of "
               f"{done + len(table.not_done)} trials done")
    sections = [table.search.rows() if table.search else [], equivalence_rows(table), table.front.rows() if table.front else []]
    parts = [form.table(*_grid(table, form, kind), max(1, len(table.by)))]
    for head, *rows in filter(None, sections):
        parts.append(form.table(list(map(form.escape, head)), [[[form.escape(cell)] for cell in row] for row in rows], 1))
    before, each, after = form.notes
    notes = [before + "".join(each.format(form.escape(note)) for note in [summary, *table_notes(table, kind)]) + after]
    return "\n".join(parts + notes)


def _reading_notes(table: StudyTable, kind: str) -> typing.Iterator[str]:
    """How to read marks, spreads, Δ, p and *."""
    cells = [cell for row in table.rows for cell in row.cells]
    if any(cell.best for cell in cells):
        yield "↓ lower is better, ↑ higher is better; the best mean is marked"
    interval_, deviation = f"[{100 * table.confidence:.4g}% confidence interval for the mean] (Student's t)", "mean ± standard deviation"
    what = {"mean-ci": f"mean {interval_}", "full": f"{deviation}, {interval_}"}.get(kind, deviation)
    if any(cell.summary.sd is not None for cell in cells):
        yield f"{what}; n: number of trials"
    elif any(cell.summary.n for cell in cells):
        yield "n = 1: no standard deviation, no interval"
    tested, level = any(cell.p is not None for cell in cells), f"p < {1 - table.confidence:.4g}"
    if table.baseline and kind in ("difference", "full"):
        yield f"Δ: difference from {table.baseline}; {table.how}" + (f", *: {level}" if tested else "")
    elif table.baseline and tested:
        yield f"*: {level} for the difference from {table.baseline}; {table.how}"


def ends_of(runs: Runs) -> dict[tuple[str, str], Runs]:
    """Runs that ended in the same way without being done, by state and error, with open ones last."""
    ends: dict[tuple[str, str], Runs] = {}
    for run in sorted(runs, key=lambda run: run.state == "open"):
        ends.setdefault((run.state, run.error.rstrip("\n")), []).append(run)
    return ends


def table_notes(table: StudyTable, kind: str) -> list[str]:
    """A line for each note, then the runs that are not done, with reasons."""
    if not table.with_notes:
        return []
    lines = [*_reading_notes(table, kind), *claim_lines(table), *(table.search.lines() if table.search else []), *table.notes]
    for (state, error), runs in ends_of(table.not_done).items():
        if table.search and state == "stopped" and not error:
            continue
        alone = len(runs) == 1 and state != "open"
        settings = f" ({settings_text(runs[0].settings, runs[0].settings.values())})" if alone else ""
        lines.append(f"{state}: {trials_text([run.number for run in runs])}{settings}" + (f": {error}" if error else ""))
    return lines


def _cell_json(table: StudyTable, cell: TableCell) -> dict[str, typing.Any]:
    summary, moved = cell.summary, cell.difference
    json: dict[str, typing.Any] = {"n": summary.n, **{name: value for name, value in cell.numbers().items() if value is not None}}
    if moved:
        json |= {"test": moved.test, "pairs": moved.pairs, "significant": table.significant(cell.p)}
    json |= {"best": cell.best, "like_best": cell.like_best}
    counts = {"nan": summary.nan, "infinite": summary.infinite, "missing": cell.missing, "never": cell.never}
    json |= {name: count for name, count in counts.items() if count}
    return json | ({"equivalence": equivalence_json(cell.equivalence)} if cell.equivalence else {})


def table_json(table: StudyTable) -> dict[str, typing.Any]:
    groups = [{"values": dict(zip(table.by, row.group.values)), "n": len(row.group.done), "trials": [run.number for run in row.group.done],
               "not_done": len(row.group.others), "baseline": row.baseline,
               "metrics": {metric.name: _cell_json(table, cell) for metric, cell in zip(table.metrics, row.cells)}} for row in table.rows]
    claim = table.claim
    more = {"search": table.search and table.search.json(), "front": table.front and table.front.json(), "claim": claim and {
        "metric": claim.metric, "margin": claim.margin, "alpha": claim.alpha, "in_file": table.claim_in_file}}
    return {"study": table.study, "confidence": table.confidence, "by": table.by,
            "metrics": [{"name": metric.name, "title": metric.title, "better": metric.better} for metric in table.metrics],
            "baseline": table.baseline, "comparison": table.how, "groups": groups,
            **{name: more[name] for name in ("search", "claim", "front") if more[name]}, "notes": table.notes,
            "not_done": [{"trial": run.number, "state": run.state, "settings": run.settings, "error": run.error} for run in table.not_done]}
