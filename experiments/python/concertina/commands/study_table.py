"""`concertina study table`: means, spread and differences over the trials of a study."""
from __future__ import annotations

import sys
import typing

from ..errors import require_word
from ..files import replace_file
from ..results import study_results
from ..study_table import make_table, with_targets
from ..table_formats import CELLS, FORMATS, default_cells, table_json, table_notes, table_text
from .groups import table_options

if typing.TYPE_CHECKING:
    from ..subcommands import Options


def main(options: Options) -> int:
    written, kind = options.text("format"), options.text("cells")
    require_word(written, FORMATS, f"a table cannot be written as '{written}'", "--format")
    kind = require_word(kind or default_cells(written), CELLS, f"cells cannot be written as '{kind}'", "--cells")
    results, output, chosen = study_results(*options.all("study")), options.text("out"), table_options(options)
    table = make_table(results, with_targets(results, chosen))
    if output:
        replace_file(output, table_text(table, written, kind))
    options.print_result(f"{output}\n" if output else table_text(table, written, kind), table_json(table) if "json" in options else None)
    if written == "csv" and "json" not in options:  # the rows alone are data; who reads them must know what they leave out
        sys.stderr.writelines(f"{note}\n" for note in table_notes(table, kind))
    return 0
