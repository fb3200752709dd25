"""`concertina study report`: the page of a study."""
from __future__ import annotations

import pathlib
import typing

from ..errors import InputError
from ..files import replace_file
from ..page import page
from ..run_set import study_results
from ..study_page import StudyPage
from ..study_table import make_table, with_targets
from ..table_formats import table_json
from .groups import table_options

if typing.TYPE_CHECKING:
    from ..subcommands import Options


def main(options: Options) -> int:
    results, output = study_results(*options.all("study")), options.text("out")
    if results.loose and not output:
        raise InputError("a page of runs has no folder of its own", "--out",
                         "--out PAGE.html; or `concertina compare`, which has their configs and bits too")
    output = output or str(pathlib.Path(results.directory, "report.html"))
    table = make_table(results, with_targets(results, table_options(options)))
    replace_file(output, page(StudyPage(results, table, output).content()))
    options.print_result(f"{output}\n", table_json(table) | {"report": output})
    return 0
