"""The table of a study as text, Markdown, LaTeX, HTML, CSV and JSON. Markup is well-formed, whatever is in names, values and errors."""
from __future__ import annotations

import dataclasses
import html
import re
import typing

from .names import Metric, digits_for, metric_named, number_text
from .results import Runs
from .statistic import Summary
from .study_claims import claim_lines, equivalence_json, equivalence_rows
from .study_table import StudyTable, TableCell, TableRow
from .texts import counted, csv_line, plain, settings_text, text_table, trials_text

FORMATS = ("text", "csv", "markdown", "latex", "html")
CELLS = ("mean-sd", "mean-ci", "difference", "full")
_MOST_COLUMNS = 140  # characters of a line of text

Lines = list[str]  # of a cell: mean and deviation; interval; difference to the baseline


def _printable(text: str) -> str:
    """A blank in place of a control character, which would end the line or the document."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", text)


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]$~&^#])", r"\\\1", _printable(text))


_LATEX = str.maketrans({"\\": "\\textbackslash{}", "|": "\\textbar{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "$<$", ">": "$>$",
          "±": "$\\pm$", "Δ": "$\\Delta$", "↓": "$\\downarrow$", "↑": "$\\uparrow$",
          **{c: f"\\{c}" for c in "&%$#_{}"}, **{c: f"{{{c}}}" for c in "[]*"}})  # [ or * after the end of a row would be its options


def _latex(text: str) -> str:
    return _printable(text).translate(_LATEX)


def _html(text: str) -> str:
    return html.escape(re.sub(r"[\x00-\x08\x0b-\x1f]", "?", text)).replace("&#x27;", "&#39;")


@dataclasses.dataclass(frozen=True)
class _Words:
    """How a format writes what it, or its character set, has words for. `aligned`: means of a column end at one place."""
    plus_minus: str = " ± "
    delta: str = "Δ "
    minus: str = "-"
    less: str = "<"
    star: str = "*"
    best: tuple[str, str] = ("> ", "")
    escape: typing.Callable[[str], str] = str
    aligned: bool = False


_TEXT_WORDS = _Words(aligned=True)
_MARKDOWN_WORDS = _Words(star="\\*", best=("**", "**"), escape=_markdown)
_LATEX_WORDS = _Words(" $\\pm$ ", "$\\Delta$ ", "$-$", "$<$", "*", ("\\textbf{", "}"), _latex)
_HTML_WORDS = _Words(minus="−", less="&lt;", best=("<b>", "</b>"), escape=_html)


class _Column:
    """The cells of a metric, whose numbers have the same digits."""

    def __init__(self, table: StudyTable, at: int, kind: str, words: _Words):
        self._table, self._kind, self._words = table, kind, words
        self._factor, self._digits = table.metrics[at].factor, table.digits(at)
        cells = [row.cells[at] for row in table.rows]
        moved = [cell.difference for cell in cells if cell.difference]
        self._moved = digits_for([self._factor * one.difference for one in moved], [self._factor * (one.half_width or 0) for one in moved])
        means = [number_text(self._factor * cell.summary.mean, self._digits) for cell in cells if cell.summary.n]
        self._width = max(map(len, means), default=0)

    def lines(self, row: TableRow, cell: TableCell) -> Lines:
        space = "  " if self._words.aligned else ""
        lines = [self._mean(row, cell)]
        if self._kind == "full" and (cell.summary.half_width or 0) > 0:
            lines.append(space + self._interval(cell.summary))
        if cell.difference and self._kind in ("difference", "full"):
            sign = "+" if cell.difference.difference > 0 else ""
            text = f"{space}{self._words.delta}{sign}{self._number(cell.difference.difference, self._moved)}"
            if cell.p is not None:
                text += f", p {self._words.less} 0.001" if cell.p < 0.001 else f", p {cell.p:.2g}"
            lines.append(text + self._star(cell))
        return lines

    def _number(self, value: float, digits: typing.Any) -> str:
        text = number_text(self._factor * value, digits)
        return self._words.minus + text[1:] if text.startswith("-") else text

    def _star(self, cell: TableCell) -> str:
        return f" {self._words.star}" if self._table.significant(cell.p) else ""

    def _interval(self, summary: Summary) -> str:
        half = summary.half_width or 0
        return f"[{self._number(summary.mean - half, self._digits)} to {self._number(summary.mean + half, self._digits)}]"

    def _mean(self, row: TableRow, cell: TableCell) -> str:
        """The best is marked, or where none is but may be, takes the same space."""
        summary, aligned = cell.summary, self._words.aligned
        if not summary.n:
            text = (f"never in {cell.never} of {len(row.group.done)}" if cell.never else "NaN" if summary.nan
                    else "infinite" if summary.infinite else "—")
            return f"  {text:>{self._width}}" if aligned else text
        mean = self._number(summary.mean, self._digits)
        mean = mean.rjust(self._width) if aligned else mean
        text = mean.join(self._words.best) if cell.best else ("  " if aligned else "") + mean
        if self._kind == "mean-ci" and summary.half_width is not None:
            text += f" {self._interval(summary)}"
        elif summary.sd is not None:
            text += self._words.plus_minus + ("0" if summary.sd == 0 else number_text(self._factor * summary.sd, self._digits))
        if self._kind in ("mean-sd", "mean-ci"):
            text += self._star(cell)
        return text + (f" (n {summary.n})" if summary.n != len(row.group.done) else "")


def _head(metric: Metric) -> str:
    return metric.title + {"lower": " ↓", "higher": " ↑", None: ""}[metric.better]


def _heads(table: StudyTable) -> list[str]:
    return [metric_named(column).title for column in table.by or ["group"]] + ["n"] + list(map(_head, table.metrics))


def _rows(table: StudyTable, words: _Words, kind: str) -> list[list[Lines]]:
    columns = [_Column(table, at, kind, words) for at in range(len(table.metrics))]
    rows = []
    for row in table.rows:
        cells = [[words.escape(value or "(none)")] for value in row.group.values] if table.by else [["all"]]
        cells[0] += ["(baseline)"] * row.baseline
        rows.append([*cells, [str(len(row.group.done))], *(column.lines(row, cell) for column, cell in zip(columns, row.cells))])
    return rows


def _sections(table: StudyTable) -> list[list[list[str]]]:
    """Small tables below the groups: rungs of a search, tests of equivalence, the front."""
    sections = [table.search.rows() if table.search else [], equivalence_rows(table),
                table.front.rows() if table.front else []]
    return [rows for rows in sections if rows]


def _summary(table: StudyTable) -> str:
    done = sum(len(row.group.done) for row in table.rows)
    of = "" if table.loose else "study "
    return f"{of}{table.study}: {counted(len(table.rows), 'group')}, {done} of {done + len(table.not_done)} trials done"


def _block(rows: list[list[Lines]], columns: list[int], widths: list[int], right: int) -> str:
    """A line for each line of the cells in these columns, of which `right` ends at one place."""
    text = ""
    for row in rows:
        for at in range(max(len(row[c]) for c in columns)):
            cells = [(row[c][at] if at < len(row[c]) else "", widths[c], c) for c in columns]
            text += "  ".join(cell.rjust(width) if c == right else cell.ljust(width) for cell, width, c in cells).rstrip(" ") + "\n"
    return text


def _plain(table: StudyTable, kind: str) -> str:
    """Metrics that do not fit beside the others go below them, with the groups again."""
    heads = _heads(table)
    first = len(heads) - len(table.metrics)
    rows = [[[head if c < first else f"  {head}"] for c, head in enumerate(heads)], *_rows(table, _TEXT_WORDS, kind)]
    widths = [max(len(line) for cell in column for line in cell) for column in zip(*rows)]
    text, c = _summary(table) + "\n", first
    while True:
        columns, width = list(range(first)), sum(widths[:first]) + 2 * first
        while c < len(heads) and (len(columns) == first or width + widths[c] <= _MOST_COLUMNS):
            columns, width, c = [*columns, c], width + widths[c] + 2, c + 1
        text += "\n" + _block(rows, columns, widths, first - 1)
        if c == len(heads):
            break
    return text + "\n" + "".join(text_table(section, 0) + "\n" for section in _sections(table)) + \
        "".join(f"{note}\n" for note in table_notes(table, kind))


def _as_markdown(table: StudyTable, kind: str) -> str:
    row_of = lambda cells: "".join(f"| {cell} " for cell in cells) + "|\n"  # noqa: E731
    heads = _heads(table)
    text = row_of(map(_markdown, heads)) + "".join("|---" if c < len(table.by) else "|---:" for c in range(len(heads))) + "|\n"
    text += "".join(row_of(map("<br>".join, row)) for row in _rows(table, _MARKDOWN_WORDS, kind))
    for head, *lines in _sections(table):
        text += "\n" + row_of(map(_markdown, head)) + "|---:" * len(head) + "|\n" + "".join(row_of(map(_markdown, line)) for line in lines)
    return f"{text}\n{_markdown(_summary(table))}\n\n" + "".join(f"- {_markdown(note)}\n" for note in table_notes(table, kind))


def _as_latex(table: StudyTable, kind: str) -> str:
    heads = _heads(table)
    texts = len(heads) - len(table.metrics) - 1
    row_of = lambda cells, end=" \\\\\n": " & ".join(cells) + end  # noqa: E731
    text = ("% \\usepackage{booktabs}; the lines below the table belong in its caption.\n\\begin{tabular}{"
            f"{'l' * texts}{'r' * (len(heads) - texts)}}}\n\\toprule\n" + row_of(map(_latex, heads)) + "\\midrule\n")
    for row in _rows(table, _LATEX_WORDS, kind):
        height = max(map(len, row))
        for at in range(height):
            cells = [cell[at] if at < len(cell) else "" for cell in row]
            cells = [f"{{\\scriptsize {cell}}}" if at and cell else cell for cell in cells]
            text += row_of(cells, " \\\\*\n" if at + 1 < height else " \\\\\n")  # the lines of a group stay on one page
    text += "\\bottomrule\n\\end{tabular}\n"
    for head, *lines in _sections(table):
        text += f"\n\\begin{{tabular}}{{{'r' * len(head)}}}\n\\toprule\n" + row_of(map(_latex, head)) + "\\midrule\n"
        text += "".join(row_of(map(_latex, line)) for line in lines) + "\\bottomrule\n\\end{tabular}\n"
    notes = "".join(f"\\par\\noindent {_latex(note)}\n" for note in table_notes(table, kind))
    return f"{text}\n% {_printable(_summary(table))}\n{{\\footnotesize\n{notes}\\par}}\n"


def _as_html(table: StudyTable, kind: str) -> str:
    """A table and a list of notes, without a page around them."""
    groups = max(1, len(table.by))
    of_group = lambda c: ' class="group"' if c < groups else ""  # noqa: E731
    text = '<div class="wide"><table class="study">\n<tr>'
    text += "".join(f"<th{of_group(c)}>{_html(head)}</th>" for c, head in enumerate(_heads(table))) + "</tr>\n"
    for row in _rows(table, _HTML_WORDS, kind):
        cells = (f"<td{of_group(c)}>{cell[0]}{''.join(f'<small>{line}</small>' for line in cell[1:])}</td>" for c, cell in enumerate(row))
        text += f"<tr>{''.join(cells)}</tr>\n"
    text += "</table></div>\n"
    for section in _sections(table):
        text += '<div class="wide"><table class="rungs">\n'
        for tag, line in zip(["th"] + ["td"] * len(section), section):
            text += "<tr>" + "".join(f"<{tag}>{_html(cell)}</{tag}>" for cell in line) + "</tr>\n"
        text += "</table></div>\n"
    return f'{text}<ul class="note">\n' + "".join(f"<li>{_html(note)}</li>\n" for note in table_notes(table, kind)) + "</ul>\n"


def _as_csv(table: StudyTable, _: str) -> str:
    """The rows alone, with all digits."""
    names = ["n", *TableCell(Summary()).figures()]
    text = csv_line([*table.by, "n", "not_done", *(f"{metric.name}_{name}" for metric in table.metrics for name in names)])
    for row in table.rows:
        cells = [[str(cell.summary.n), *("" if value is None else plain(value) for value in cell.figures().values())] for cell in row.cells]
        text += csv_line([*row.group.values, str(len(row.group.done)), str(len(row.group.others)), *(one for cell in cells for one in cell)])
    return text


_WRITERS: dict[str, typing.Callable[[StudyTable, str], str]] = {
    "text": _plain, "csv": _as_csv, "markdown": _as_markdown, "latex": _as_latex, "html": _as_html}


def default_cells(format_: str) -> str:
    """The whole of each cell as text; mean and deviation in the markup of other programs."""
    return "full" if format_ == "text" else "mean-sd"


def table_text(table: StudyTable, format_: str = "text", cells: str = "") -> str:
    """The table with notes and the trials that are not done, in one of FORMATS with one of CELLS; CSV has the rows alone."""
    return _WRITERS[format_](table, cells or default_cells(format_))


def _any_cell(table: StudyTable, is_so: typing.Callable[[TableCell], bool]) -> bool:
    return any(is_so(cell) for row in table.rows for cell in row.cells)


def _spread_note(table: StudyTable, kind: str) -> str:
    """What stands beside a mean."""
    if not _any_cell(table, lambda cell: cell.summary.n > 0):
        return ""
    if not _any_cell(table, lambda cell: cell.summary.sd is not None):
        return "n = 1: no standard deviation, no interval"
    interval, deviation = f"[{100 * table.confidence:.4g}% interval of the mean] by Student's t", "mean ± standard deviation"
    what = {"mean-ci": f"mean {interval}", "full": f"{deviation}, {interval}"}.get(kind, deviation)
    return f"{what}; n: trials that are done"


def _difference_note(table: StudyTable, kind: str) -> str:
    """How to read Δ, p and *."""
    tested = _any_cell(table, lambda cell: cell.p is not None)
    level = f"p < {1 - table.confidence:.4g}"
    if not table.baseline:
        return ""
    if kind in ("difference", "full"):
        return f"Δ: difference to {table.baseline}; {table.how}" + (f", *: {level}" if tested else "")
    return f"*: {level} for the difference to {table.baseline}; {table.how}" if tested else ""


def _ends(table: StudyTable) -> list[tuple[str, str, Runs]]:
    """State, error and runs of those that ended alike without being done; open ones last."""
    ends: dict[tuple[str, str], Runs] = {}
    for run in table.not_done:
        ends.setdefault((run.state, run.error.rstrip("\n")), []).append(run)
    return sorted(((state, error, runs) for (state, error), runs in ends.items()), key=lambda end: end[0] == "open")


def table_notes(table: StudyTable, kind: str) -> list[str]:
    """A line for each note, then the runs that are not done, with reasons."""
    if not table.with_notes:
        return []
    marked = _any_cell(table, lambda cell: cell.best)
    lines = ["↓ lower is better, ↑ higher is better; the best mean is marked"] * marked
    lines += [line for line in (_spread_note(table, kind), _difference_note(table, kind)) if line]
    lines += claim_lines(table) + (table.search.lines() if table.search else []) + table.notes
    for state, error, runs in _ends(table):
        if table.search and state == "stopped" and not error:
            continue
        line = f"{state}: {trials_text([run.number for run in runs])}"
        if len(runs) == 1 and state != "open":
            line += f" ({settings_text(runs[0].settings, runs[0].settings.values())})"
        lines.append(line + (f": {error}" if error else ""))
    return lines


def _cell_json(table: StudyTable, cell: TableCell) -> dict[str, typing.Any]:
    summary, moved = cell.summary, cell.difference
    json: dict[str, typing.Any] = {"n": summary.n, **{name: value for name, value in cell.figures().items() if value is not None}}
    if moved:
        json |= {"test": moved.test, "pairs": moved.pairs, "significant": table.significant(cell.p)}
    json |= {"best": cell.best, "like_best": cell.like_best}
    counts = {"nan": summary.nan, "infinite": summary.infinite, "missing": cell.missing, "never": cell.never}
    json |= {name: count for name, count in counts.items() if count}
    return json | ({"equivalence": equivalence_json(cell.equivalence)} if cell.equivalence else {})


def table_json(table: StudyTable) -> dict[str, typing.Any]:
    """The table as an object for JSON."""
    groups = [{"values": dict(zip(table.by, row.group.values)), "n": len(row.group.done), "trials": [run.number for run in row.group.done], "not_done": len(row.group.others),
               "baseline": row.baseline, "metrics": {metric.name: _cell_json(table, cell) for metric, cell in zip(table.metrics, row.cells)}}
              for row in table.rows]
    json: dict[str, typing.Any] = {
        "study": table.study, "confidence": table.confidence, "by": table.by,
        "metrics": [{"name": metric.name, "title": metric.title, "better": metric.better} for metric in table.metrics],
        "baseline": table.baseline, "comparison": table.how, "groups": groups}
    if table.search:
        json["search"] = table.search.json()
    if table.claim:
        json["claim"] = {"metric": table.claim.metric, "margin": table.claim.margin, "alpha": table.claim.alpha,
                         "in_file": table.claim_in_file}
    if table.front:
        json["front"] = table.front.json()
    not_done = [{"trial": run.number, "state": run.state, "settings": run.settings, "error": run.error} for run in table.not_done]
    return json | {"notes": table.notes, "not_done": not_done}
