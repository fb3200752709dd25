"""`concertina study power`: the probability that a study's seeds show an equivalence, before it is launched."""
from __future__ import annotations

import typing

from ..study_power import power

if typing.TYPE_CHECKING:
    from ..subcommands import Options


def main(options: Options) -> int:
    found = power(options.text("study"), pilot=options.text("pilot"), deviation=options.optional("deviation"),
                  difference=options.number("difference"), wanted=options.number("power"),
                  seeds=int(options.number("seeds")) if "seeds" in options else None, equivalent=options.text("equivalent"),
                  alpha=options.optional("alpha"), baseline=options.all("baseline"))
    options.print_result(found.text(), found.json())
    return 0
