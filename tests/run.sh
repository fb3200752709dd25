#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test. The last line is "N passed, N
# failed"; the exit code is 0 only if nothing failed. Skipped tests (no GPU, say) count as neither.
# Arguments go to `meson test` (for example --suite unit).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. experiments/setup.sh

if ! install_packages || ! build; then
  echo 'no test ran: setting up or building failed'
  echo '0 passed, 1 failed'
  exit 1
fi

mpi_environment
rm -f build/meson-logs/testlog.json
meson test -C build --no-rebuild --print-errorlogs "$@"
status=$?

# Counted from meson's own record, a JSON object a line; not from what it prints.
python3 - build/meson-logs/testlog.json "$status" <<'PY'
import json
import sys

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
for name, result in failed:
    print(f"{result}: {name}")
print(f"{len(passed)} passed, {len(failed)} failed")
sys.exit(1 if failed or not passed else 0)
PY
