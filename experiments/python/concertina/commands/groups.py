"""The options of commands that compare groups of runs."""
from __future__ import annotations

import typing

from ..errors import InputError
from ..statistic import PAIRED, WILCOXON
from ..study_power import claim_of
from ..study_table import TableOptions

if typing.TYPE_CHECKING:
    from ..subcommands import Options


def table_options(options: Options) -> TableOptions:
    if "alpha" in options and "equivalent" not in options:
        raise InputError("--alpha has no effect without --equivalent", "--alpha", "--equivalent METRIC=MARGIN as well, or leave out --alpha")
    claim = claim_of(options.text("equivalent"), options.optional("alpha")) if "equivalent" in options else None
    return TableOptions(
        metrics=options.all("metric"), by=options.all("by"), baseline=options.all("baseline"), pair=options.text("pair"),
        confidence=options.number("confidence"), test=PAIRED if options.text("test") == "t" else WILCOXON,
        correction=options.text("correction"), where=options.all("where"), sort=options.text("sort"), mixed="mixed" in options,
        notes="no-notes" not in options, claim=claim, front=options.all("front"), targets=options.all("to"), stopped="stopped" in options)
