"""`concertina study plot`: a chart of a study."""
from __future__ import annotations

import pathlib
import typing

from ..chart import FORMATS
from ..charts import save
from ..errors import require_word
from ..files import replace_file
from ..results import study_results
from ..study_plot import plot_study
from ..study_power import claim_of
from ..study_series import PlotOptions

if typing.TYPE_CHECKING:
    from ..subcommands import Options


def main(options: Options) -> int:
    path = options.text("out")
    ending = pathlib.Path(path).suffix.lower()
    why = f"'{ending}' is not a format of figures" if ending else "the file of a figure needs an ending that names its format"
    require_word(ending, FORMATS, why, path)
    words = {name.replace("-", "_"): options.text(name) for name in ("kind", "x", "y", "title", "spread", "x-scale", "y-scale") if name in options}
    numbers = {name: options.number(name) for name in ("confidence", "width", "height") if name in options}
    lists = {name: options.all(name) for name in ("group", "where", "baseline")}
    flags = {name: name in options for name in ("mixed", "stopped")}
    given: dict[str, typing.Any] = words | numbers | lists | flags
    claim = claim_of(options.text("equivalent")) if "equivalent" in options else None
    plotted = plot_study(study_results(*options.all("study")), PlotOptions(**given, claim=claim))
    replace_file(path, save(plotted.figure(), ending))
    options.print_result("".join(f"{note}\n" for note in plotted.notes) + f"{path}\n", plotted.json() | {"figure": path})
    return 0
