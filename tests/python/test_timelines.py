"""Pictures of predicted steps are complete and readable."""
import io
import json
import random
import re
import types
import xml.dom.minidom

import numpy as np
import pytest
from concertina.chart import save
from concertina.commands import schedule_draw
from concertina.steps import LOOKS, short_number, timeline_block
from concertina.timeline import draw_timelines, shade
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch
from matplotlib.text import Text

HOSTILE = "100% of $x_1$ {a}} \\end{tikzpicture} # ~ ^ | <&> \"q\" [[]]> \ud800 \x01 \n µ"


def panel(dice, name="1f1b", ranks=4, microbatches=8, chunks=1):
    """Returns a step in which ranks work in random order, with random waits."""
    rows, path = [], []
    for rank in range(ranks):
        boxes, now = [], 0.0
        for at in range(2 * microbatches * chunks):
            kind, m, chunk = ("forward", "backward")[at % 2], at // 2 % microbatches, at // (2 * microbatches)
            now += dice.choice([0, 0, dice.random()])
            length, part = dice.choice([1, 2, 0.5]), dice.choice([0, 0, 0, 1])
            boxes += [[kind, now, now + length, f"{kind} {m}", m, chunk, one] for one in ((1, 2) if part else (0,))]
            if rank == at % ranks:
                path.append([rank, now, now + length])
            now += length
        boxes += [["optimizer", now, now + 1, "optimizer"]] + [["transfer", now + 1, now + 2, "a message"]] * (rank % 2)
        rows.append({"rank": rank, "boxes": boxes})
    makespan = max(row["boxes"][-1][2] for row in rows)
    levels = [[0, 0], [1, dice.uniform(1, 9)], [makespan / 2, 2], [makespan, 0]]
    return {"name": name, "ranks": ranks, "microbatches": microbatches, "chunks": chunks, "makespan": makespan, "bubble": 0.25, "rows": rows,
            "critical_path": sorted(path, key=lambda step: step[1]), "saved": {"rank": 0, "levels": levels},
            "by_cause": {"schedule": 0.2, "imbalance": 0, "transfer": 0.05, "gradients_and_optimizer": 0.0001}}


def steps(dice, *panels, **more):
    return {"inches": dice.choice([3.25, 6.75]), "panels": list(panels), "bytes": dice.random() < 0.5, **more}


def texts(figure):
    """Returns all texts except labels of ticks beyond the ends of their axis."""
    beyond = {tick.label1 for axes in figure.axes for tick in axes.xaxis.get_major_ticks() if tick.get_loc() > axes.get_xlim()[1]}
    return [one for one in figure.findobj(Text) if one.get_text() and one.get_visible() and one not in beyond]


def assert_readable(figure):
    figure.draw_without_rendering()
    named = texts(figure)
    left, bottom, right, top = np.array([one.get_window_extent().extents for one in named]).T
    outside = (left <= -1) | (bottom <= -1) | (right >= figure.bbox.x1 + 1) | (top >= figure.bbox.y1 + 1)
    assert not outside.any(), [named[at].get_text() for at in np.flatnonzero(outside)]
    width = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    height = np.minimum.outer(top, top) - np.maximum.outer(bottom, bottom)
    room = 1 + 0.3 * np.minimum.outer(top - bottom, top - bottom)  # boxes of texts have space below the letters
    overlapping = np.argwhere(np.triu((width >= 1) & (height >= room), 1))
    assert not len(overlapping), [(named[one].get_text(), named[other].get_text()) for one, other in overlapping]


def assert_tex(text):
    """Checks that braces are balanced, and that special characters of TeX occur only in commands."""
    text = re.sub(r"\\catcode`\\[%^]=\\active\\def[%^]\{(\\%|\\ifmmode\\sp\\else\\\^\{\}\\fi)\}", "", text)  # written by matplotlib 3.8 and later
    bare = re.sub(r"(?m)^%.*\n|%$", "", text)
    bare = re.sub(r"\\[{}$&#_%]", "", bare)
    assert "setmainfont" not in text and bare.count("{") == bare.count("}") and bare.count("\\end{pgfpicture}") == 1 and not set("#_&^~\x01") & set(bare)


def boxes(figure, color):
    """Returns left and right of the boxes of a color, as positions in the figure."""
    found = []
    for patch in figure.findobj(PathPatch):
        if to_hex(patch.get_facecolor()) == color and patch.get_facecolor()[3] and patch.axes:
            corners = patch.axes.transData.transform(patch.get_path().vertices).reshape(-1, 5, 2)[:, :, 0]
            found += zip(corners.min(axis=1), corners.max(axis=1))
    return sorted(found)


@pytest.mark.parametrize("seed", range(8))
def test_any_steps_are_drawn_whole(seed):
    dice = random.Random(seed)
    chunks, ranks = dice.choice([1, 1, 2, 3]), dice.choice([1, 2, 4, 8, 16, 40])
    panels = [panel(dice, name, ranks, dice.randint(1, 12), chunks) for name in ("1f1b", "a longer name of a schedule: 2", HOSTILE)[:dice.randint(1, 3)]]
    given = steps(dice, *panels, **dice.choice([{}, {"time_label": "time (F, I, W of a rank: 1,1,1)"}]))
    figure = draw_timelines(given)
    shown = save(figure, ".svg")
    xml.dom.minidom.parseString(shown)
    assert_readable(figure)
    assert_tex(save(figure, ".tex").decode())
    assert shown == save(draw_timelines(given), ".svg")
    block = timeline_block(given)
    assert [box[3] for one in block["panels"] for row in one["rows"] for box in row["boxes"]] == [
        box[3] for one in panels for row in one["rows"] for box in row["boxes"]]


def test_boxes_stand_where_they_ran():
    dice = random.Random(1)
    long, short = panel(dice, microbatches=8), panel(dice, microbatches=4)
    figure = draw_timelines(steps(dice, long, short))
    box = figure.axes[0].get_window_extent()
    for kind in ("forward", "backward", "optimizer"):
        ran = sorted((start, end) for one in (long, short) for row in one["rows"] for what, start, end, *_ in row["boxes"] if what == kind)
        assert np.allclose(boxes(figure, shade(kind, 0, 1)), box.x0 + np.array(ran) / long["makespan"] * box.width, atol=0.01)


def test_every_microbatch_is_numbered_or_none():
    rows = [{"rank": rank, "boxes": [["forward", m, m + 0.1 + 0.9 * (rank == 0), f"F {m}", m, 0, 0] for m in range(8)]} for rank in range(2)]
    one = {**panel(random.Random(1)), "rows": rows, "makespan": 8, "critical_path": [], "bubble": 0.273,
           "by_cause": {"schedule": 0.273, "transfer": 0}}
    numbers = lambda figure: [text.get_text() for text in texts(figure) if text.get_color() == "#ffffff"]
    assert not numbers(draw_timelines({"inches": 3.25, "panels": [one], "time_label": "time"}))
    one["rows"] = rows[:1]
    figure = draw_timelines({"inches": 6.75, "panels": [one], "time_label": "time"})
    assert numbers(figure) == list("01234567") and "makespan 8, bubble 27.3% (schedule)" in [text.get_text() for text in texts(figure)]


def test_many_actions_are_a_small_picture():
    dice = random.Random(5)
    one = panel(dice, ranks=64)
    for row in one["rows"]:
        row["boxes"] = [[dice.choice(["forward", "backward"]), at, at + dice.choice([1, 0.9])] for at in range(900)]
    one.update(ranks=512, makespan=900)
    given = {"inches": 6.75, "panels": [one], "columns": 972}
    figure = draw_timelines(given)
    assert len(save(figure, ".svg")) < 2_500_000 and len(json.dumps(timeline_block(given), separators=(",", ":"))) < 900_000
    said = " ".join(text.get_text() for text in texts(figure))
    assert "each of 972 columns" in said and "At most 64 ranks are shown" in said
    assert_readable(figure)


def test_activations_rise_by_steps_without_dips():
    one = {**panel(random.Random(1)), "makespan": 900, "saved": {"rank": 0, "levels": [*([at / 4, at] for at in range(8)), [9, 6], [9.1, 7], [800, 0]]}}
    heights = draw_timelines({"inches": 6.75, "panels": [one], "time_label": "time"}).axes[1].lines[0].get_ydata()
    assert len(set(heights)) == 8 and list(heights[:9]) == sorted(heights[:9]) and list(heights[9:]) == [7, 0, 0, 0]


def test_a_step_that_takes_no_time_is_drawn():
    one = {**panel(random.Random(1), ranks=1, microbatches=1), "makespan": 0, "rows": [{"rank": 0, "boxes": [["forward", 0, 0, "F 0", 0, 0, 0]]}],
           "saved": {"rank": 0, "levels": [[0, 0]]}, "critical_path": []}
    figure = draw_timelines({"inches": 6.75, "panels": [one], "time_label": "time"})
    xml.dom.minidom.parseString(save(figure, ".svg"))
    assert any(text.get_text().startswith("makespan 0, ") for text in texts(figure))


@pytest.mark.parametrize("kind", ["svg", "tex", "html", "pdf", "png"])
def test_the_command_writes_each_kind(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(steps(random.Random(2), panel(random.Random(2), "<b>")))))
    options = {"out": f"{tmp_path}/a.{kind}", "note": "concertina <i>"}
    assert schedule_draw(types.SimpleNamespace(text=options.get)) == 0
    data = (tmp_path / f"a.{kind}").read_bytes()
    begins = {"svg": b"<?xml", "tex": b"% Use", "html": b"<!DOCTYPE html>", "pdf": b"%PDF", "png": b"\x89PNG"}
    assert data.startswith(begins[kind]) and len(data) > 1000 and b"<b>" not in data and b"<i>" not in data


def test_numbers_are_short():
    assert [short_number(value, 4) for value in (0, 0.25, 12345, 3.5e-6, 1e9)] == ["0", "0.25", "12345", "3.5e-06", "1e+09"]


def test_a_page_has_steps_by_number():
    one = panel(random.Random(3), microbatches=64)
    del one["saved"], one["by_cause"]
    block = timeline_block({"inches": 9, "panels": [one]})
    assert block["panels"][0]["title"] == "1f1b" and not block["panels"][0]["figures"] + block["panels"][0]["caption"]
    for kind, start, *_ in one["rows"][0]["boxes"][:9]:
        assert any(list(LOOKS)[box[0]] == kind and box[1] == pytest.approx(start, rel=1e-6, abs=1e-6) for box in block["panels"][0]["rows"][0]["boxes"])
