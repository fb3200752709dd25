"""`concertina compare`: runs beside each other."""
from __future__ import annotations

import typing

from ..files import replace_file
from ..page import page
from ..run_comparison import compare
from ..study_page import compare_page
from .groups import table_options

if typing.TYPE_CHECKING:
    from ..subcommands import Options


def main(options: Options) -> int:
    output = options.text("out")
    found = compare(*options.all("study"), options=table_options(options))
    replace_file(output, page(compare_page(found, output)))
    options.print_result(f"{found.text()}{output}\n", found.json() | {"page": output})
    return 1 if "same" in options and not found.same else 0
