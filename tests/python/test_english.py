"""Plain English: no phrase of tests/plain_english.txt in the product's texts, and options that say what they do and their default."""
import io
import os
import pathlib
import re
import subprocess
import tokenize

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
PHRASES = [re.split(r" {2,}", line) for line in (TOP / "tests/plain_english.txt").read_text(encoding="utf-8").splitlines()
           if line and not line.startswith("#")]
CPP = re.compile(r'R"\w*\(.*?\)\w*"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'", re.S)
QUOTED = re.compile(r"`[^`\n]*`")
FOLDERS = ("core", "models", "parallel", "io", "experiments")


def text_of(path):
    """The comments and strings of a source as (line, text), or the lines of a document. Comments of several lines are one text."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return [(token.start[0], token.string) for token in tokenize.generate_tokens(io.StringIO(content).readline)
                if token.type in (tokenize.COMMENT, tokenize.STRING)]
    if path.suffix in (".cc", ".h", ".cu", ".cuh", ".inc"):
        joined = re.sub(r"(?<=\S)\n[ \t]*//[/ ]*(?=\w)", lambda gap: " " + "\0", content)  # \0: a line that was joined
        found, line = [], 1
        place = 0
        for match in CPP.finditer(joined):
            between = joined[place:match.start()]
            line += between.count("\n") + between.count("\0")
            found.append((line, QUOTED.sub("`", match.group().replace("\0", ""))))
            line += match.group().count("\n") + match.group().count("\0")
            place = match.end()
        return found
    return list(enumerate(QUOTED.sub("`", content).splitlines(), 1))


def product_texts():
    paths = [*TOP.glob("*.md"), *TOP.glob(".github/*.md")]
    for folder in FOLDERS:
        paths += [path for path in (TOP / folder).rglob("*") if path.suffix in (".cc", ".h", ".cu", ".cuh", ".inc", ".py", ".md", ".sh", ".toml")]
    return sorted(paths)


def test_no_phrase_of_the_list():
    patterns = [(re.compile(phrase, re.I), instead) for phrase, instead, _ in PHRASES]
    found = [f"{path.relative_to(TOP)}:{line}: '{match.group()}': write {instead}"
             for path in product_texts() for line, text in text_of(path)
             for pattern, instead in patterns if (match := pattern.search(text))]
    assert not found, "\n".join(found)


def test_each_phrase_finds_its_example():
    for phrase, _, example in PHRASES:
        assert re.search(phrase, example, re.I) and not re.search(phrase, "there is no tensor longer than so many that fit", re.I), phrase


def commands(words=()):
    """All commands with their help."""
    text = subprocess.run([os.environ["CONCERTINA"], *words, "--help"], capture_output=True, text=True, check=True, timeout=60,
                          env=os.environ | {"COLUMNS": "100"}).stdout
    yield words, text
    if inner := re.search(r"^Subcommands:\n((?:  .*\n?)+)", text, re.M):
        for name in re.findall(r"^  (\S+)", inner.group(1), re.M):
            yield from commands((*words, name))


def options_of(text):
    """(names and type, description) of each option and positional in a help text. Long names have a line of their own."""
    section, found = "", []
    lines = text.splitlines()
    for line, following in zip(lines, lines[1:] + [""]):
        if heading := re.fullmatch(r"(\S.*):", line):
            section = heading.group(1)
        elif section in ("Options", "Positionals") and line.startswith("  "):
            if line.startswith(" " * 30):
                found[-1][1] += " " + line.strip()
            else:
                found.append([line.strip(), ""] if following.startswith(" " * 30) else [line[:30].strip(), line[30:].strip()])
    return [(spec.partition(" Excludes:")[0], described.strip()) for spec, described in found]


@pytest.fixture(scope="module")
def options():
    return [(" ".join(words), spec, described) for words, text in commands() for spec, described in options_of(text)]


def test_each_option_says_what_it_does(options):
    assert len(options) > 300
    assert [one for one in options if len(one[2].split()) < 2 or one[2].endswith(".")] == []


# What is done only on request: outputs, filters, additions. Everything else that takes a value has a default.
ON_REQUEST = re.compile(r"-(config|words|sets|set|command|line|predictions|logits|ensemble|text|files|report|costs|machine|out|output|write|write-costs"
                        r"|where|to|front|sbatch|boundary-bytes|latency|pilot|deviation|equivalent|host-faults|disk-faults|microbatches|hosts|launcher)$")


def test_each_value_has_a_default(options):
    lacking = set()
    for command, spec, described in options:
        name, _, kind = spec.partition(" ")
        if kind and not re.search(r"=\S|REQUIRED", re.sub(r"\b[A-Z.]+=[A-Z]+", "", spec)) and "default" not in described \
                and not re.search(r"\brequired\b|; 0: ", described) and not ON_REQUEST.search("-" + name.split(",")[0].lstrip("-")):
            lacking.add(f"{command} {spec}: {described}")
    assert not lacking, "\n".join(sorted(lacking))
