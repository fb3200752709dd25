"""Faults in rows of tables, and near duplicates compared with a search of all pairs."""
import random

import pytest
from concertina.commands.data_quality import find_faults, near_duplicates


def runs_of(text):
    return {text[at:at + 5] for at in range(max(1, len(text) - 4))}


def similarity(one, other):
    return len(one & other) / len(one | other)


@pytest.mark.parametrize("seed", range(8))
def test_near_duplicates_are_those_that_a_comparison_of_all_pairs_finds(seed):
    chance, texts = random.Random(seed), []
    for _ in range(300):
        if texts and chance.random() < 0.4:
            text = bytearray(chance.choice(texts))
            for _ in range(chance.randint(1, 4)):
                text[chance.randrange(len(text))] = ord("z")
            texts.append(bytes(text))
        else:
            texts.append(bytes(chance.choice(b"abcdefghijklmnopqrst   ") for _ in range(chance.randint(1, 120))))
    runs, found = list(map(runs_of, texts)), {item: (other, share) for item, other, share in near_duplicates(texts, 0.8)}
    for item, (other, share) in found.items():
        assert other < item and other not in found and share >= 0.8
        assert share == pytest.approx(similarity(runs[item], runs[other]), abs=1e-12)
    near = [item for item in range(len(texts)) if any(similarity(runs[item], runs[other]) >= 0.8 for other in range(item) if other not in found)]
    assert len(near) > 20 and len(set(near) - set(found)) <= 1


def test_of_many_that_are_alike_each_is_found_once():
    texts = [f"a long sentence that all of these rows have, with the number {at}".encode() for at in range(2000)]
    found = near_duplicates(texts, 0.8)
    assert len(found) > 1990 and [item for item, _, _ in found] == sorted({item for item, _, _ in found})
    assert not near_duplicates([], 0.8) and not near_duplicates([b"", b"a"], 0.8)


def row(*texts, label="1", split="train", tokens=1, broken=None):
    return {"folded": [" ".join(text.lower().split()) for text in texts], "label": label, "split": split, "tokens": tokens,
            "decodable": not any("\udce9" in text for text in texts), "broken": broken}


def faults_of(rows, near=0.8, tokens=None):
    return [(found.row, found.fault, found.other) for found in find_faults(rows, near, tokens)]


def test_each_fault_is_said_of_the_row_that_would_go():
    rows = [row("A good film"), row(" a GOOD  film "), row("so so", label="0"), row("so so"), row(" \t"), row("caf\udce9"),
            row("x", broken="1 columns"), row("held out"), row("much too long", tokens=9), row("Held out", split="validation"),
            row("held out", split="validation"), row("fine", split="test")]
    wanted = [(1, "duplicate", 0), (2, "conflict", 3), (3, "conflict", 2), (3, "duplicate", 2), (4, "empty", None), (5, "undecodable", None),
              (6, "broken", None), (7, "overlap", 9), (8, "cut", None), (10, "duplicate", 9)]
    assert faults_of(rows, tokens=8) == wanted
    assert len(faults_of(rows)) == len(wanted) - 1, "without a limit, no row is too long"


def test_a_row_to_train_on_is_near_one_that_is_held_out():
    rows = [row("the quick brown fox jumps over the lazy dog"), row("the quick brown fox jumps over the lazy dogs", split="test")]
    assert faults_of(rows) == [(0, "near", 1)] and not faults_of(rows, near=0)


def test_pairs_are_the_same_where_both_texts_are():
    rows = [row("a", "b c"), row("a b", "c"), row("A", "b  C"), row("a", "")]
    assert faults_of(rows) == [(2, "duplicate", 0), (3, "empty", None)]
