# Finds calls that may wait forever without a line in tests/waits.txt, and lines that no call needs.
# usage: awk -f waits.awk FILE... (if there is a table, it must be the first file)
BEGIN {
  mpi = "MPI_(Init|Init_thread|Finalize|Barrier|Wait(all|any|some)?|(S|B|R)?[Ss]end|M?[Rr]ecv|Sendrecv[a-z_]*" \
        "|Bcast|Reduce[a-z_]*|All[a-z]+|Gatherv?|Scatterv?|Scan|Exscan|M?Probe|File_[a-z_]+|Win_[a-z_]+" \
        "|Comm_(split|dup|create|free|spawn|connect|accept|disconnect)[a-z_]*)"
  system_calls = "flock|waitpid|wait4|waitid|ppoll|pselect|epoll_wait|recvfrom|recvmsg|accept4|msgrcv|sem_wait" \
        "|sigwait|sigwaitinfo|sigsuspend|pthread_join|pthread_cond_wait|cuda[A-Z][A-Za-z]*Synchronize"
  # Methods may have these names too, so match only calls of the system functions.
  global = "([^A-Za-z_]::(poll|select|read|recv|accept|connect|pause)[(]|poll[(]&)"
  standard = "std::(jthread|future|promise|async|latch|barrier|condition_variable(_any)?|counting_semaphore|binary_semaphore)"
  methods = "[.]join[(][)]|(gate|wake|condition|ready)_?[.]wait[(][a-z]"
  pattern = mpi "[(]|[^A-Za-z_.>](" system_calls ")[(]|" global "|" standard "|" methods "|F_(OFD_)?SETLKW"
}
FILENAME ~ /waits\.txt$/ {
  if (/^#/ || NF == 0) next
  n = split($0, part, ": *")
  if (part[n] == "" || n < 3) print "tests/waits.txt: a line without a reason: " $0
  n = split(substr($0, length(part[1]) + 2), words, " +")
  for (i = 1; i <= n; ++i) {
    word = words[i]
    last = word ~ /[^:]:$/
    sub(/:$/, "", word)
    if (word != "") allowed[part[1] " " word] = 1
    if (last) break
  }
  next
}
/^ *\/\// || /WNOHANG|LOCK_NB/ { next }
{
  sub(/\/\/.*/, "")
  gsub(/"[^"]*"/, "\"\"")
  for (rest = " " $0; match(rest, pattern); rest = substr(rest, RSTART + RLENGTH)) {
    call = substr(rest, RSTART, RLENGTH)
    if (call !~ /std::/) {
      sub(/^[^A-Za-z0-9_]+/, "", call)
      sub(/[(].*/, "", call)
      n = split(call, words, /[^A-Za-z0-9_]+/)
      call = words[n]
    }
    key = FILENAME " " call
    if (key in allowed) used[key] = 1
    else print FILENAME ":" FNR ": " call " may wait forever: give it a limit, or add a reason to tests/waits.txt"
  }
}
END {
  for (key in allowed) if (!(key in used)) { sub(/ /, ": ", key); print "tests/waits.txt: nothing needs the line of " key }
}
