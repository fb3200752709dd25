"""The sections on a run's recorded steps: timelines, bubble by cause, and memory over a step."""
import math

from .names import bytes_text
from .page import Block, chart, folded, line, section, table, unzipped, words
from .run_report import RunFiles
from .steps import timeline_block

MOST_ROWS, MOST_BARS, MOST_MEMORY_CHARTS = 256, 64, 8
# The color and meaning of each cause in parallel/simulate/idle_causes.h.
CAUSES = {"schedule": ("grey", "warm-up and drain: idle time of the plan with equal stages and instant transfers"),
          "imbalance": ("yellow", "waiting for stages that are slower than the mean of their pipeline, or for slower replicas"),
          "variation": ("sky", "waiting because equal actions had different durations"),
          "transfer": ("vermillion", "transfers of activations and gradients between ranks, and time-sharing of cores"),
          "reduction": ("green", "transfers and addition of gradients from other holders"),
          "optimizer": ("pink", "transfers of losses, norms and updated weights from other ranks"),
          "other": ("dark", "data loading, late starts and bookkeeping")}


def _spread(count: int, most: int) -> list[int]:
    """Equally spaced ranks."""
    return list(range(count)) if count <= most else [at * (count - 1) // (most - 1) for at in range(most)]


def timeline(run: RunFiles) -> list[Block]:
    missing = run.recorded.get("costs_missing", "")
    if "timeline" not in run.recorded:
        return []
    how = "" if missing else ", and message durations from costs.json"
    note = [words("note", f"The prediction omits the reduction of gradients, and uses the median duration of recorded messages: {missing}.")]
    return section("Timeline", [*note[:bool(missing)], timeline_block(run.recorded["timeline"])],
                   f"The same plan twice on one axis: above, simulated with the mean durations of recorded actions{how}; below, the "
                   "recorded step of median duration, from the first rank's start to the last rank's end.")


def cause_bars(rows: list[Block], unit: str) -> Block:
    """Idle time by cause. Each row has a name, values (computing, idle without a cause, CAUSES), a text and a mark."""
    parts = [("computing and updating", "blue"), ("idle", "line"), *((name, look[0]) for name, look in CAUSES.items())]
    used = [at for at in range(len(parts)) if any(row["values"][at] > 0 for row in rows)]
    return {"kind": "bars", "unit": unit, "parts": [parts[at] for at in used],
            "rows": [{**row, "values": [row["values"][at] for at in used]} for row in rows]}


def bubble(run: RunFiles) -> list[Block]:
    ranks = [(at, run.ranks[at]) for at in _spread(len(run.ranks), MOST_ROWS)]
    bars = [{"name": f"rank {at}", "values": [0, 0, *(100 * rank["causes"].get(cause, 0) for cause in CAUSES)],
             "mark": 100 * rank["predicted_bubble"], "text": f"{rank['bubble']:.1%}"}
            for at, rank in ((at, run.ranks[at]) for at in _spread(len(run.ranks), MOST_BARS))]
    rows = [[f"rank {at}", *(f"{100 * share:.2f}%" for share in (*(rank["causes"].get(cause, math.nan) for cause in CAUSES), rank["bubble"],
                                                                rank["predicted_bubble"]))] for at, rank in ranks]
    blocks = [cause_bars(bars, "%"), words("note", "; ".join(f"{name}: {look[1]}" for name, look in CAUSES.items()) + "."),
              *folded("Values by rank", blocks=[table(["share of the step", *CAUSES, "bubble", "predicted"], rows)])]
    return section("Bubble, by cause", blocks, "The share of a step in which a rank neither computes nor updates, averaged over "
                   "the recorded steps. A rank that waits for another that is still computing waits for that computation "
                   "(schedule, imbalance, variation); after it, for the transfer.")


def _memory_chart(run: RunFiles, at: int, high: float) -> Block:
    rank, mib = run.ranks[at], 1 << 20
    saved = [(ms, one / mib) for ms, one in rank.get("predicted_memory", [])]
    series = [line("saved, predicted", *unzipped(saved), "orange", area=True, stepped=True)]
    for column, name, color in ((1, "saved, measured", "blue"), (2, "boundary buffers, measured", "green")):
        series.append(line(name, *unzipped([(point[0], point[column] / mib) for point in rank.get("memory", [])]), color, stepped=True))
    return chart(f"rank {at}: memory, MiB", series, x="ms", high=1.08 * high / mib, note=f"peak {bytes_text(rank['peak']['saved_bytes'])}")


def memory(run: RunFiles) -> list[Block]:
    high = max(max(rank["peak"]["saved_bytes"], rank["predicted_peak"]["saved_bytes"], rank["peak"]["boundary_bytes"]) for rank in run.ranks)
    drawn, rows = _spread(len(run.ranks), MOST_MEMORY_CHARTS), []
    for at in _spread(len(run.ranks), MOST_ROWS):
        peak, predicted = run.ranks[at]["peak"], run.ranks[at]["predicted_peak"]
        exact = [{"text": bytes_text(one["saved_bytes"]), "title": f"{one['saved_bytes']:,} bytes",
                  "look": "same" if peak["saved_bytes"] == predicted["saved_bytes"] else "differs"} for one in (peak, predicted)]
        rows.append([f"rank {at}", str(peak["activations"]), str(predicted["activations"]), *exact, bytes_text(peak["boundary_bytes"]),
                     bytes_text(predicted["boundary_bytes"])])
    some = [words("note", f"{len(drawn)} of {len(run.ranks)} ranks are shown, equally spaced.")] * (len(drawn) < len(run.ranks))
    head = ["peak", "microbatch-stages", "predicted", "saved", "predicted", "boundary buffers", "reserved"]
    return section("Memory", [*(_memory_chart(run, at, high) for at in drawn), *some, *folded("Peaks by rank", blocks=[table(head, rows)])],
                   "Saved activations (with gradients between I and W) and buffers between stages in use over the step; weights, optimizer state "
                   "and gradients do not change within it.")
