#!/usr/bin/env python3
"""Compiles each header by itself, with the compiler and the flags of a build: what it uses, it
includes. Usage: headers.py SOURCE BUILD"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

source, build = sys.argv[1:]
commands = json.load(open(os.path.join(build, "compile_commands.json")))
main = next(entry for entry in commands if entry["output"].startswith("experiments/concertina.p/"))
words = [word for word in shlex.split(main["command"]) if word != "ccache"]
flags = [word for word in words[1:] if word.startswith(("-D", "-I", "-std", "-W", "-f", "-pthread"))]
for entry in commands:  # folders of libraries that the main file does not need
    if entry["file"].endswith((".cc", ".cpp")):
        flags += [word for word in shlex.split(entry["command"])
                  if word.startswith(("-I", "-isystem", "-D")) and word not in flags]


def problem(header):
    """The compiler's first words about `header`; empty: none."""
    done = subprocess.run([words[0], *flags, "-include", os.path.join(source, header), "-fsyntax-only",
                           "-x", "c++", "/dev/null"], cwd=build, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{header}:\n{done.stderr[:2000]}"


headers = subprocess.run(["find", "core", "models", "parallel", "io", "experiments", "-name", "*.h"], cwd=source,
                         capture_output=True, text=True, check=True).stdout.split()
if not any("cuda" in word for word in flags):
    headers = [header for header in headers if not header.startswith("core/cuda/")]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    problems = [text for text in pool.map(problem, sorted(headers)) if text]
print(*problems, f"{len(headers)} headers, {len(problems)} that do not compile alone", sep="\n")
sys.exit(bool(problems) or len(headers) < 300)
