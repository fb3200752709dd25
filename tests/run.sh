#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests: all but the suite `slow`, in 12 to 16
# minutes on two cores, or with --all every test. The suite `gpu` needs a machine with a GPU. The
# last lines show the ten slowest tests and "N passed, N failed"; the exit code is 0 only if nothing
# failed. Without --all, a new build on a machine without a GPU has no CUDA; --all compiles and
# emulates it. A test whose cases were all skipped counts as neither; skipped cases of a passed test
# are counted and named.
# Usage: tests/run.sh [--all] [arguments of `meson test`, for example --suite unit]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. experiments/install/setup.sh

quick='--no-suite slow'
setup=
[ -e /dev/nvidiactl ] || quick="$quick --no-suite gpu" setup=-Dcuda=disabled
if [ "${1-}" = --all ]; then
  quick='' setup='' && shift
fi

# Prints the build targets that a quick run needs, by path in build/; empty: everything.
programs() {
  [ -z "$quick" ] || meson introspect --targets --tests build | python3 -c '
import json, os, sys
known = json.load(sys.stdin)
used = {target for test in known["tests"] for target in test["depends"]
        if not any(suite.split(":")[-1] in sys.argv[1:] for suite in test["suite"])}
print(*sorted({os.path.relpath(file, "build") for target in known["targets"]
               if target["id"] in used for file in target["filename"]}))' $quick
}

# shellcheck disable=SC2046
if ! install_packages packages.txt packages-python.txt || ! configure $setup || ! build $(programs); then
  echo 'no test ran: setup or build failed'
  echo '0 passed, 1 failed'
  exit 1
fi

mpi_environment
begin=$(date +%s)
rm -f build/meson-logs/testlog.json
# Runs one test more than there are cores, since many of them wait now and then.
# shellcheck disable=SC2086
meson test -C build --no-rebuild --print-errorlogs --num-processes $(($(nproc) + 1)) $quick "$@"
status=$?

# Counts from meson's own record, one JSON object per line, not from its output.
python3 - build/meson-logs/testlog.json "$status" "$begin" <<'PY'
import glob
import json
import os
import sys
from xml.etree import ElementTree

path, status = sys.argv[1], int(sys.argv[2])
try:
    with open(path) as log:
        tests = list(map(json.loads, log))
except FileNotFoundError:
    tests = [{"name": "meson test", "result": "ERROR", "duration": 0}]
results = [(test["name"], test["result"]) for test in tests]
passed = [name for name, result in results if result in ("OK", "EXPECTEDFAIL")]
skipped = [name for name, result in results if result == "SKIP"]
failed = [(name, result) for name, result in results
          if result not in ("OK", "EXPECTEDFAIL", "SKIP")]
if status != 0 and not failed:
    failed.append(("meson test", f"exit code {status}"))
if skipped:
    print("skipped:", ", ".join(skipped))
for report in sorted(glob.glob("build/*.xml")):
    if os.path.getmtime(report) < float(sys.argv[3]):
        continue
    name = os.path.basename(report)[:-len(".xml")]
    cases = sum(int(suite.get("skipped", 0)) for suite in ElementTree.parse(report).getroot())
    if cases and any(test.endswith("/ " + name) for test in passed):
        print(f"{cases} case{'s' if cases > 1 else ''} of {name} skipped")
slowest = sorted(tests, key=lambda test: -test["duration"])[:10]
print("slowest, s:", ", ".join(f"{test['name']} {test['duration']:.0f}" for test in slowest))
for name, result in failed:
    print(f"{result}: {name}")
print(f"{len(passed)} passed, {len(failed)} failed")
sys.exit(1 if failed or not passed else 0)
PY
