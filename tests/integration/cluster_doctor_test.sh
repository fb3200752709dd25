#!/usr/bin/env bash
# `concertina doctor --cluster` on emulated hosts with one fault at a time: it must report that fault and no other.
# usage: cluster_doctor_test.sh PROGRAM ODD_HOST MPIRUN OPTIONS...
here=$(realpath -- "$(dirname -- "$0")")
odd=$(realpath -- "$2")
. "$here/common.sh" "$1" "${@:3}"
export HOSTS_NAME=doctor$$
hosts=$here/emulated_hosts.sh
"$hosts" up 3 2>said || { cat said; echo "no emulated hosts here: not tested"; exit 77; }
clean_up() {
  "$hosts" down
  umount "$folder/small" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT
mkdir runs small
unset OMP_NUM_THREADS MALLOC_PERTURB_ # only the ranks of h1 would have them: an agent passes on few variables

# Lines of ./fault run on h2 before the program starts.
cat >rank <<'END'
#!/bin/bash
[ "$(hostname)" != h2 ] || . ./fault
exec "$@"
END
# The daemon of h2, and so its ranks, is limited to the first core.
printf '#!/bin/bash\nexec $([ "$1" = h2 ] && echo taskset -c 0) %q agent "$@"\n' "$hosts" >one-core
chmod +x rank one-core
: >fault

# Prints the findings, one per line, and the exit code; not the load, which is the same on all hosts.
agent="$hosts agent" on=h1:2,h2:2,h3:2 place=runs more=()
look() {
  local code=0
  "$hosts" on h1 "$mpirun" "${options[@]}" --mca plm_rsh_agent "$agent" -H "$on" "${more[@]}" ./rank \
    "$program" doctor --cluster --json --set run.dir="$folder/$place" >out 2>err || code=$?
  python3 - "$code" >found <<'END' || { cat out err; die "no answer"; }
import json, sys
answer = json.loads(open("out").read().strip().splitlines()[-1])
findings = [finding for finding in answer["findings"] if finding["check"] != "load"]
assert sys.argv[1] == str(int(any(finding["error"] for finding in findings)))
assert answer["hosts"] == 3 and answer["seconds"] < 20 and all(finding["remedy"] and finding["bound"] for finding in findings)
for finding in findings: print("error" if finding["error"] else "warning", finding["check"] + "|", finding["what"])
END
}
look
cut -d'|' -f1 found | sort -u >healthy # findings about this machine
cat found
number=0 named=0
planted() { # severity and check, message (a regular expression)
  number=$((number + 1))
  look
  : >fault
  grep -vFf healthy found >new || true
  sed 's/^/  /' new
  [ "$(wc -l <new)" = 1 ] && grep -qE "^$1\| $2" new && named=$((named + 1)) || echo "FAILED: not '$1: $2' alone: $(cat found)"
}

"$hosts" slow h3
planted 'warning bandwidth' 'h3: all its links: [^;]*$'
"$hosts" fast h3
"$hosts" slow h2 50mbit h3
planted 'warning bandwidth' 'h2-h3: [^;]*$'
"$hosts" fast h2
echo "export ODD_HOST=link LD_PRELOAD=$odd" >fault
planted 'warning latency' 'h2: all its links: [^;]*$'
more=(--mca btl tcp,self)
planted 'warning transport' '.*h1: .* with OMPI_MCA_btl=tcp,self; h2: .*; h3: '
more=()
echo "export ODD_HOST=clock LD_PRELOAD=$odd" >fault
planted 'warning clock' 'h2: \+[34]\.[0-9]* s$'
echo 'set -- taskset -c 0 "$@"' >fault
planted 'warning binding' 'h2: ranks 2-3 on CPU 0 of [^;]*$'
echo 'mount -t tmpfs none runs' >fault
planted 'error run.dir' "h2: does not see $folder/runs$"
echo "export ODD_HOST=lock LD_PRELOAD=$odd" >fault
planted 'error locks' 'h2: [^;]*$'
mount -t tmpfs -o size=64k none small
place=small
planted 'error disk' 'h1: .*No space left.*; h2: .*; h3: '
place=runs
echo "export ODD_HOST=disk LD_PRELOAD=$odd" >fault
planted 'warning disk speed' 'h2: [4-7] fsyncs/s, [^;]*$'
python3 - "$program" <<'END'
import sys
program = bytearray(open(sys.argv[1], "rb").read())
program[program.index(b"GNU\0", program.index(b"\x14\0\0\0\x03\0\0\0")) + 4] ^= 255  # of its build-id
open("other", "wb").write(program)
END
chmod +x other
echo 'set -- ./other "${@:2}"' >fault
planted 'error program' '2 ranks on h2: '
mount -o remount,size=24m "/tmp/$HOSTS_NAME/h2"
planted '(warning|error) /dev/shm' 'h2: .* free$'
mount -o remount,size=1g "/tmp/$HOSTS_NAME/h2"
echo 'ulimit -n 200' >fault
planted 'error limits' 'h2: 200 open files [^;]*$'
echo 'export OMP_NUM_THREADS=7' >fault
planted 'warning environment' 'OMP_NUM_THREADS of 2 ranks on h2: 7$'
on=h1,h2,h3 agent=$PWD/one-core
[ "$(nproc)" = 1 ] || planted 'warning cores' '1 rank on h2: 1 core$'
echo "$named of $number"
[ "$named" = "$number" ]
