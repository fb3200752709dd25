"""Pictures of predicted steps: what they show is what they are given, and readable."""
import io
import json
import math
import random
import re
import types
import xml.dom.minidom

import pytest
from concertina.commands import schedule_draw
from concertina.drawing import Box, Drawing, Path, Words, hatch_lines, shortened, svg, text_width, tikz, wrapped
from concertina.timeline import LOOKS, Work, axis_ticks, draw_timelines, short_number, waits_between

HOSTILE = "100% of $x_1$ {a}} \\end{tikzpicture} # ~ ^ | <&> \"q\" [[]]> \ud800 \x01 \n µ"


def panel(dice, name="1f1b", ranks=4, microbatches=8, chunks=1):
    """A step in which ranks work in random order, with random waits."""
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


def titled(drawing):
    return [shape for shape in drawing.shapes if isinstance(shape, Box) and shape.title]


def texts(drawing):
    return [shape.text for shape in drawing.shapes if isinstance(shape, Words)]


def corners(words):
    """Of a text that no font of text_width() leaves; capitals and digits are 0.72 of the size high."""
    width, high = text_width(words.text, words.size, words.bold), 0.72 * words.size
    left = {"start": 0, "middle": -width / 2, "end": -width}[words.anchor]
    x, y = zip(*((words.x + (a if not words.turn else b), words.y + (b if not words.turn else -a)) for a in (left, left + width) for b in (0, -high)))
    return min(x), min(y), max(x), max(y)


def assert_readable(drawing):
    places = [(corners(shape), shape.text) for shape in drawing.shapes if isinstance(shape, Words)]
    for at, ((left, top, right, bottom), text) in enumerate(places):
        assert left > -0.5 and top > -0.5 and right < drawing.width + 0.5 and bottom < drawing.height + 0.5, text
        for other, name in places[:at]:
            assert right <= other[0] + 0.05 or other[2] <= left + 0.05 or bottom <= other[1] + 0.05 or other[3] <= top + 0.05, (text, name)


def assert_tex(text):
    """Balanced, one statement a line, and no character that means something to TeX but in commands."""
    bare = re.sub(r"(?m)^%.*\n", "", text)
    bare = re.sub(r"\\[{}$&#_%]", "", bare)
    assert bare.count("{") == bare.count("}") and bare.count("[") == bare.count("]") and bare.count("\\end{tikzpicture}") == 1
    assert not set("#_&^~\x01") & set(bare) and all(line.endswith(";") for line in bare.splitlines() if line.startswith(("\\path", "\\node")))


@pytest.mark.parametrize("seed", range(12))
def test_any_steps_are_drawn_whole(seed):
    dice = random.Random(seed)
    chunks, ranks = dice.choice([1, 1, 2, 3]), dice.choice([1, 2, 4, 8, 16, 40])
    panels = [panel(dice, name, ranks, dice.randint(1, 12), chunks) for name in ("1f1b", "a longer name of a schedule: 2", HOSTILE)[:dice.randint(1, 3)]]
    for in_page in (False, True):
        given = steps(dice, *panels, **dice.choice([{}, {"time_label": "time (F, I, W of a rank: 1,1,1)"}]))
        drawing = draw_timelines(given, in_page)
        actions = [box for one in panels for row in one["rows"] for box in row["boxes"]]
        assert len(titled(drawing)) == len(actions)
        assert [box.title.split(",")[0] for box in titled(drawing)] == [box[3] for box in actions]
        shown = svg(drawing, in_page)
        xml.dom.minidom.parseString(shown)
        assert shown.count("</title></rect>") == len(actions) and shown == svg(draw_timelines(given, in_page), in_page)
        assert_tex(tikz(drawing))
        if not in_page:
            assert_readable(drawing)


def test_boxes_stand_where_they_ran():
    dice = random.Random(1)
    long, short = panel(dice, microbatches=8), panel(dice, microbatches=4)
    drawing = draw_timelines(steps(dice, long, short))
    boxes, actions = titled(drawing), [box for one in (long, short) for row in one["rows"] for box in row["boxes"]]
    left, right = drawing.zoomed[0], drawing.width - 5
    for box, (kind, start, end, *_) in zip(boxes, actions):
        assert box.x == pytest.approx(left + start / long["makespan"] * (right - left)) and box.fill == LOOKS[kind].colour
        assert box.width == pytest.approx((end - start) / long["makespan"] * (right - left))


def test_every_microbatch_is_numbered_or_none():
    rows = [{"rank": rank, "boxes": [["forward", m, m + 0.1 + 0.9 * (rank == 0), f"F {m}", m, 0, 0] for m in range(8)]} for rank in range(2)]
    one = {**panel(random.Random(1)), "rows": rows, "makespan": 8, "critical_path": [], "bubble": 0.273,
           "by_cause": {"schedule": 0.273, "transfer": 0}}
    assert not [text for shape in draw_timelines({"inches": 3.25, "panels": [one], "time_label": "time"}).shapes if isinstance(shape, Words)
                and shape.anchor == "middle" and (text := shape.text) in "34" and shape.colour == "#ffffff"]
    one["rows"] = rows[:1]
    drawing = draw_timelines({"inches": 6.75, "panels": [one], "time_label": "time"})
    numbers = [shape.text for shape in drawing.shapes if isinstance(shape, Words) and shape.colour == "#ffffff"]
    assert numbers == list("01234567") and "makespan 8, bubble 27.3% (schedule)" in texts(drawing)


def test_a_page_numbers_boxes_as_it_zooms():
    one = panel(random.Random(3), microbatches=64)
    del one["saved"], one["by_cause"]
    drawing = draw_timelines({"inches": 9, "panels": [one]}, in_page=True)
    assert {shape.zoom for shape in drawing.shapes if isinstance(shape, Words)} > {1, 2}
    assert not re.search("makespan|activations", " ".join(texts(drawing))) and "waiting for a transfer" in texts(drawing)
    shown = svg(drawing, in_page=True)
    assert 'data-zoom="2" display="none"' in shown and "<title>a message, " in shown and 'data-axes="' in shown


def test_many_actions_are_a_small_picture():
    dice = random.Random(5)
    one = panel(dice, ranks=64)
    for row in one["rows"]:
        row["boxes"] = [[dice.choice(["forward", "backward"]), at, at + dice.choice([1, 0.9])] for at in range(900)]
    one.update(ranks=512, makespan=900)
    drawing = draw_timelines({"inches": 6.75, "panels": [one], "columns": 972})
    assert len(svg(drawing)) < 2_000_000 and len(drawing.shapes) < 1000 and not titled(drawing)
    said = " ".join(texts(drawing))
    assert "each of 972 columns" in said and "At most 64 ranks are shown" in said
    assert_readable(drawing)


def test_activations_rise_by_steps_without_dips():
    one = {**panel(random.Random(1)), "makespan": 900, "saved": {"rank": 0, "levels": [*([at / 4, at] for at in range(8)), [9, 6], [9.1, 7], [800, 0]]}}
    drawing = draw_timelines({"inches": 6.75, "panels": [one], "time_label": "time"})
    heights = [y for _, y in next(shape for shape in drawing.shapes if isinstance(shape, Path) and shape.fill).pieces[0]]
    assert len({round(y, 3) for y in heights}) == 8 and heights[:17] == sorted(heights[:17], reverse=True)


def test_a_step_that_takes_no_time_is_drawn():
    one = {**panel(random.Random(1), ranks=1, microbatches=1), "makespan": 0, "rows": [{"rank": 0, "boxes": [["forward", 0, 0, "F 0", 0, 0, 0]]}],
           "saved": {"rank": 0, "levels": [[0, 0]]}, "critical_path": []}
    drawing = draw_timelines({"inches": 6.75, "panels": [one], "time_label": "time"})
    xml.dom.minidom.parseString(svg(drawing))
    assert any(text.startswith("makespan 0, ") for text in texts(drawing))


@pytest.mark.parametrize("kind", ["svg", "tex", "html", "pdf", "png"])
def test_the_command_writes_each_kind(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(steps(random.Random(2), panel(random.Random(2), "<b>")))))
    options = {"out": f"{tmp_path}/a.{kind}", "note": "concertina <i>"}
    assert schedule_draw.main(types.SimpleNamespace(text=options.get)) == 0
    data = (tmp_path / f"a.{kind}").read_bytes()
    begins = {"svg": b"<svg", "tex": b"% In a document", "html": b"<!DOCTYPE html>", "pdf": b"%PDF", "png": b"\x89PNG"}
    assert data.startswith(begins[kind]) and len(data) > 1000 and b"<b>" not in data and b"<i>" not in data


def test_any_words_are_text():
    drawing = Drawing(100, 50, HOSTILE)
    drawing.add(Box(1, 2, 30, 4, "#010203", title=HOSTILE), Box(1, 2, -30, 4), Path([]), Words(50, 40, HOSTILE, 7, turn=-90), Words(1, 1, "", 7))
    assert len(drawing.shapes) == 2
    xml.dom.minidom.parseString(svg(drawing))
    assert_tex(tikz(drawing))
    assert "rotate=90" in tikz(drawing)


def test_words_fit():
    assert shortened("short", 7, 100) == "short"
    assert shortened("Ä" * 12, 7, 40).endswith("...") and text_width(shortened("Ä" * 12, 7, 40), 7) <= 40
    lines = wrapped("one two three four five six seven", 7, 60)
    assert len(lines) > 1 and all(text_width(line, 7) <= 60 for line in lines)


def test_hatches_stay_in_their_area():
    for slopes in ((1,), (-1,), (1, -1)):
        lines = hatch_lines(Box(10, 20, 13, 5), slopes, 2)
        assert len(lines) >= 2 and all(10 - 1e-9 <= x <= 23 + 1e-9 and 20 - 1e-9 <= y <= 25 + 1e-9 for line in lines for x, y in line)


def test_ticks_are_round_and_on_the_axis():
    dice = random.Random(1)
    for _ in range(300):
        high, count = 10.0**dice.randint(-12, 12) * dice.randint(1, 3000), dice.randint(2, 12)
        ticks = axis_ticks(high, count)
        assert 2 <= len(ticks) <= max(6, count + 1) and len({label for _, label in ticks}) == len(ticks)
        assert all(0 <= value <= high * (1 + 1e-6) for value, _ in ticks)
        assert f"{ticks[1][0]:.6e}"[:3] in ("1.0", "2.0", "5.0") and math.isclose(ticks[-1][0], ticks[1][0] * (len(ticks) - 1))
    assert [short_number(value, 4) for value in (0, 0.25, 12345, 3.5e-6, 1e9)] == ["0", "0.25", "12340", "3.5e-06", "1e9"]


def test_waits_and_boxes_fill_the_step():
    rows = [panel(random.Random(seed))["rows"][1]["boxes"] for seed in range(9)]
    for row in rows:
        works = [Work(*one) for one in row]
        waits = waits_between(works, 99)
        assert sum(end - start for start, end in waits) + sum(one.end - one.start for one in works if one.part < 2) == pytest.approx(99)
