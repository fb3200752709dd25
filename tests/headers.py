#!/usr/bin/env python3
"""Compiles each header by itself, with the compiler and flags of a build, to find missing includes.
Usage: headers.py SOURCE BUILD"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

source, build = sys.argv[1:]
commands = json.load(open(os.path.join(build, "compile_commands.json")))
compiler, flags = None, {}  # by folder, for headers with their own flags; None: all others
folders = []
for entry in commands:
    words = [word for word in shlex.split(entry["command"]) if word != "ccache"]
    folders += [word for word in words if word.startswith(("-I", "-isystem")) and word not in folders]
    own = "core/cpu/" if "/libcpu_" in entry["output"] else None
    if own or entry["output"].startswith("experiments/concertina.p/"):
        compiler = words[0]
        flags[own] = [word for word in words if word.startswith(("-D", "-std", "-f", "-m", "-pthread"))]


def problem(header):
    """Returns the compiler's first message about `header`, or an empty string."""
    own = flags["core/cpu/" if header.startswith("core/cpu/") else None]
    done = subprocess.run([compiler, *own, *folders, "-include", os.path.join(source, header), "-fsyntax-only",
                           "-x", "c++", "/dev/null"], cwd=build, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{header}:\n{done.stderr[:2000]}"


headers = subprocess.run(["find", "core", "models", "parallel", "io", "experiments", "-name", "*.h"], cwd=source,
                         capture_output=True, text=True, check=True).stdout.split()
if not any("cuda" in word for word in folders):
    headers = [header for header in headers if not header.startswith("core/cuda/")]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    problems = [text for text in pool.map(problem, sorted(headers)) if text]
print(*problems, f"{len(headers)} headers, {len(problems)} that do not compile alone", sep="\n")
sys.exit(bool(problems) or len(headers) < 300)
