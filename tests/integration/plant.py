#!/usr/bin/env python3
"""Copies a source file of the product with faults planted in it: the text between < > below is
replaced while the environment has PLANTED=NAME. A line that the file does not contain exactly once
ends the build: update it here then. Without arguments, prints the names. usage: plant.py [FROM
TO]"""
import os
import sys

FAULTS = {
    "policy-of-the-layout": ("freezing.cc", "record_of(sums_, <view.step>,",
                             "view.step * std::ssize(trainer.layout().pipelines)"),
    "policy-of-one-rank": ("freezing.cc", "decide(rules_, <state_>, record);",
                           "trainer.world().rank() == 0 ? FreezeState{} : state_"),
    "cache-of-another-sample": ("auto_cache.cc", "samples_[<first + i>];\n    const CacheKey key{", "first"),
    "cache-of-older-weights": ("auto_cache.cc", '.name + " " + <hash_of(b)>);', "std::string()"),
    "move-of-one-moment": ("redistribute.cc", "add_pieces(bytes_of(old_place(move, <k>)), move.to, sends_);", "0UL"),
    "move-without-counts": ("redistribute.cc", "swap_weights(<bucket>, std::move(made.weights),",
                            "(state_.missed()[bucket] = 0, bucket)"),
}
HEAD = """#include <cstdlib>
#include <string_view>
[[maybe_unused]] static bool planted(std::string_view name) {
  const char* chosen = std::getenv("PLANTED");
  return chosen != nullptr && name == chosen;
}
"""

if len(sys.argv) == 1:
    print(*FAULTS, sep="\n")
    sys.exit()
source, target = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    text = file.read()
for name, (place, line, wrong) in FAULTS.items():
    if place != os.path.basename(source):
        continue
    right = line[line.index("<") + 1:line.index(">")]
    there, here = line.replace("<", "").replace(">", ""), f'(planted("{name}") ? {wrong} : {right})'
    if text.count(there) != 1:
        sys.exit(f"plant.py: {source} contains this line {text.count(there)} times: {there}")
    text = text.replace(there, line.replace(f"<{right}>", here))
with open(target, "w", encoding="utf-8") as file:
    file.write(HEAD + text)
