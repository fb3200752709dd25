#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test, and ends with the counts.
# Arguments go to `meson test` (for example --suite unit).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
. experiments/setup.sh
install_packages
build
mpi_environment

rm -f build/meson-logs/testlog.json
status=0
meson test -C build --no-rebuild --print-errorlogs "$@" || status=$?
python3 - build/meson-logs/testlog.json <<'PY'
import json, sys
results = [json.loads(line)["result"] for line in open(sys.argv[1])]
passed = sum(r in ("OK", "EXPECTEDFAIL") for r in results)
skipped = sum(r == "SKIP" for r in results)
failed = len(results) - passed - skipped
print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
PY
exit "$status"
