#!/usr/bin/env python3
"""Checks that every file names one version, that the changelog has it, and that the changelog has
an entry if the product has changed since then. Usage: release_test.py SOURCE."""
import json
import os
import re
import subprocess
import sys
import tomllib

os.chdir(sys.argv[1])
PRODUCT = ["core", "parallel", "models", "io", "experiments", ":!*.md"]
bad = []


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def found(pattern, path):
    match = re.search(pattern, text(path), re.MULTILINE)
    return match[1] if match else None


version = found(r"^  version: '(.*)'", "meson.build")
others = {
    "experiments/python/pyproject.toml": tomllib.loads(text("experiments/python/pyproject.toml"))["project"]["version"],
    ".github/codemeta.json": json.loads(text(".github/codemeta.json"))["version"],
    ".github/CITATION.cff": found(r"^version: (.*)", ".github/CITATION.cff"),
    "experiments/install/debian/changelog": found(r"^concertina \((.*)-\d+\)", "experiments/install/debian/changelog"),
    "experiments/install/spack/packages/concertina/package.py":
        found(r'^    version\("(.*)"\)', "experiments/install/spack/packages/concertina/package.py"),
    ".github/ARTIFACT.md": found(r"C\+\+20; (.*) \|", ".github/ARTIFACT.md"),
}
bad += [f"{path} has version {other}, meson.build {version}" for path, other in others.items() if other != version]
day = found(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", ".github/CHANGELOG.md")
if day is None:
    bad.append(f".github/CHANGELOG.md has no section '## [{version}] - YEAR-MONTH-DAY'")
elif day != found(r"^date-released: (.*)", ".github/CITATION.cff"):
    bad.append(f".github/CITATION.cff was not released on {day}, as .github/CHANGELOG.md says")
sections = re.split(r"^## ", text(".github/CHANGELOG.md"), flags=re.MULTILINE)[1:]
unreleased = sections[0] if sections[0].startswith("[Unreleased]") else ""


def git(*words):
    done = subprocess.run(["git", *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


# The commit that introduced the version; empty in an archive or a shallow clone.
release = git("log", "-1", "--format=%H", f"-S## [{version}]", "--", ".github/CHANGELOG.md")
changed = release and git("diff", "--name-only", release, "HEAD", "--", *PRODUCT)
if changed and not re.search(r"^- ", unreleased, re.MULTILINE):
    bad.append(f"the product has changed since {version} ({changed.splitlines()[0]}), but .github/CHANGELOG.md has no entry "
               "under [Unreleased]")
print("\n".join("FAILED: " + line for line in bad) or f"{version}: {len(others)} places agree; the changelog has it")
sys.exit(1 if bad else 0)
