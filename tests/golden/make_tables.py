"""Makes tables/ and tables.json for tests/io/table_test.cc: python3 make_tables.py

The same rows as written by pandas in several ways, and as read back by pandas; the beginnings of GLUE's nine
tasks as published, with the rows that the readers of Hugging Face's transformers produce.
"""

import csv
import json
import pathlib

import pandas as pd

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "tables"

ROWS = [
    ["a fine film", "good", 1],
    ["very, very long", "bad", 2],
    ['he said "no", twice: ""', "bad", 3],
    ["two\nlines, and\r\nthree", "good", 4],
    ["a\ttab", "good", 5],
    ["", "bad", 6],
    ['"', "bad", 7],
    [" spaces stay ", "good", 8],
    ["Köln 東京 🙂", "good", 9],
    ["a; semicolon", "bad", 10],
]
TABLE = pd.DataFrame(ROWS, columns=["text", "label", "more"])

# For each task: its columns as published by GLUE (none: no header line), a row, and what is read from it.
GLUE = {
    "CoLA": (None, ["gj04", "0", "*", "The sailors rode the breeze clear of the rocks it."],
             ["The sailors rode the breeze clear of the rocks it."], "0"),
    "SST-2": (["sentence", "label"], ['a "quoted" word', "1"], ['a "quoted" word'], "1"),
    "MRPC": (["\ufeffQuality", "#1 ID", "#2 ID", "#1 String", "#2 String"],
             ["1", "702876", "702977", 'Amrozi said, "the witness"', '"Referring to him'],
             ['Amrozi said, "the witness"', '"Referring to him'], "1"),
    "QQP": (["id", "qid1", "qid2", "question1", "question2", "is_duplicate"],
            ["133273", "213221", "213222", '"How" is it?', "What is it?", "0"],
            ['"How" is it?', "What is it?"], "0"),
    "STS-B": (["index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2",
               "score"], ["0", "main-captions", "MSRvid", "2012test", "0001", "none", "none", "A plane is taking off.",
                          "An air plane is taking off.", "5.000"],
              ["A plane is taking off.", "An air plane is taking off."], "5.000"),
    "MNLI": (["index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse",
              "sentence1_parse", "sentence2_parse", "sentence1", "sentence2", "label1", "gold_label"],
             ["0", "31193", "31193n", "government", "( a )", "( b )", "(ROOT a)", "(ROOT b)", "Cream skimming has two.",
              "Product and geography.", "neutral", "neutral"],
             ["Cream skimming has two.", "Product and geography."], "neutral"),
    "QNLI": (["index", "question", "sentence", "label"], ["0", "When did it begin?", "Before that.", "not_entailment"],
             ["When did it begin?", "Before that."], "not_entailment"),
    "RTE": (["index", "sentence1", "sentence2", "label"], ["0", "No weapons.", "Weapons found.", "not_entailment"],
            ["No weapons.", "Weapons found."], "not_entailment"),
    "WNLI": (["index", "sentence1", "sentence2", "label"], ["0", "I stuck a pin.", "It was a pin.", "1"],
             ["I stuck a pin.", "It was a pin."], "1"),
}


def main():
    FOLDER.mkdir(exist_ok=True)
    written = {
        "minimal.tsv": dict(sep="\t", index=False),
        "all.tsv": dict(sep="\t", index=False, quoting=csv.QUOTE_ALL),
        "index.tsv": dict(sep="\t"),  # a first column without a name
        "minimal.csv": dict(index=False),
        "all.csv": dict(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n"),
        "excel.csv": dict(index=False, encoding="utf-8-sig", lineterminator="\r\n"),
        "semicolon.csv": dict(sep=";", index=False),
    }
    expected = {}
    for name, how in written.items():
        path = FOLDER / name
        TABLE.to_csv(path, **how)
        back = pd.read_csv(path, sep=how.get("sep", ","), keep_default_na=False, encoding="utf-8-sig")
        expected[name] = [[row["text"], row["label"]] for _, row in back.iterrows()]
    TABLE.to_json(FOLDER / "pandas.jsonl", orient="records", lines=True)
    back = pd.read_json(FOLDER / "pandas.jsonl", lines=True)
    expected["pandas.jsonl"] = [[row["text"], row["label"]] for _, row in back.iterrows()]
    glue = {}
    for name, (names, row, texts, label) in GLUE.items():
        lines = [names] * (names is not None) + [row]
        glue[name] = {"file": "".join("\t".join(line) + "\n" for line in lines), "texts": texts, "label": label}
    (HERE / "tables.json").write_text(json.dumps({"pandas": expected, "glue": glue}, indent=1, ensure_ascii=False) + "\n",
                                      encoding="utf-8")


main()
