#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test. The last line is "N passed, N
# failed"; the exit code is 0 only if nothing failed. A test of which every case is skipped (no GPU,
# say) counts as neither; cases that are skipped inside a test that passed are counted and named.
# Arguments go to `meson test` (for example --suite unit).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. experiments/install/setup.sh

if ! install_packages || ! build; then
  echo 'no test ran: setting up or building failed'
  echo '0 passed, 1 failed'
  exit 1
fi

mpi_environment
begin=$(date +%s)
rm -f build/meson-logs/testlog.json
meson test -C build --no-rebuild --print-errorlogs "$@"
status=$?

# Counted from meson's own record, a JSON object a line; not from what it prints.
python3 - build/meson-logs/testlog.json "$status" "$begin" <<'PY'
import glob
import json
import os
import sys
from xml.etree import ElementTree

path, status = sys.argv[1], int(sys.argv[2])
try:
    with open(path) as log:
        results = [(test["name"], test["result"]) for test in map(json.loads, log)]
except FileNotFoundError:
    results = [("meson test", "ERROR")]
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
for name, result in failed:
    print(f"{result}: {name}")
print(f"{len(passed)} passed, {len(failed)} failed")
sys.exit(1 if failed or not passed else 0)
PY
