#!/bin/sh
# Checks which files may include which, that names are defined once, and what lies at the top level
# (README, "Architecture"). It first proves, on made-up trees, that each rule can fail.
# usage: architecture_test.sh SOURCE_ROOT
set -u
here=$(realpath -- "$(dirname -- "$0")")

# sources ROOT FOLDER...: prints the C++ and CUDA files in these folders (or the files given), one per line.
sources() {
  root=$1; shift
  for folder; do
    [ ! -e "$root/$folder" ] || (cd "$root" && find "$folder" -type f \
      \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.in' -o -name '*.inc' \))
  done
}

# colors ROOT: no C++ file may contain a color. Drawing is done in Python, so each color has one owner.
colors() {
  (cd "$1" && sources . core models parallel io experiments |
    xargs -r grep -nHE '#[0-9a-fA-F]{6}|\<rgb\(|#[0-9a-fA-F]{3}\>') |
    sed 's|$|: colors are for experiments/python/concertina/page.py|'
}

# refuse ROOT WHY PATTERN ALLOWED FOLDER...: no file in the folders may have a line that matches
# PATTERN, unless its path matches ALLOWED. Both are extended regular expressions.
refuse() {
  root=$1; why=$2; pattern=$3; allowed=$4; shift 4
  sources "$root" "$@" | grep -Ev "^($allowed)" | (cd "$root" && xargs -r grep -nE "$pattern" /dev/null) |
    while read -r line; do echo "$line: $why"; done
}

# forbid ROOT WHY HEADERS ALLOWED FOLDER...: like refuse, for lines that include a header matching HEADERS.
forbid() {
  root=$1; why=$2; headers=$3; shift 3
  refuse "$root" "$why" "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($headers)" "$@"
}

# spelled ROOT WHY NAMES ALLOWED FOLDER...: like refuse, for strings that are one of NAMES, alone or
# after a path.
spelled() {
  root=$1; why=$2; names=$3; shift 3
  refuse "$root" "$why" "^[^#]*\"([^\" ]*/)?($names)\"" "$@"
}

# defined_twice ROOT FOLDER...: finds types with the same name that two files define in one
# namespace. The linker would treat them as one type (the one definition rule). Anonymous namespaces
# are private to a file. This relies on clang-format: a namespace ends with a comment.
defined_twice() {
  root=$1; shift
  files=$(sources "$root" "$@" | sort)
  [ -z "$files" ] || (cd "$root" && awk '
    FNR == 1 { depth = 0; anonymous = 0 }
    /^(inline )?namespace( [a-z_0-9:]+)? [{]$/ {
      sub(/^inline /, "")
      space[++depth] = $2 == "{" ? "" : $2
      anonymous += $2 == "{"
      next
    }
    /^}  \/\/ namespace/ { anonymous -= space[depth--] == ""; next }
    depth > 0 && anonymous == 0 &&
    /^(template <.*> )?(struct|class|union|enum|enum class) [A-Za-z_0-9:]+( final)?(( :| [{]).*)?$/ {
      type = $0
      sub(/^template <.*> /, "", type)
      sub(/^(enum class|struct|class|union|enum) /, "", type)
      sub(/[ :{].*/, "", type)
      name = ""
      for (i = 1; i <= depth; ++i) name = name space[i] "::"
      name = name type
      if (!(name in file)) file[name] = FILENAME
      else if (file[name] != FILENAME)
        print FILENAME ":" FNR ": " name " is also defined in " file[name]
    }' $files)
}

# rooms ROOT: finds includes that ROOT/tests/rooms.txt does not allow, and cycles between its rooms.
rooms() {
  [ -f "$1/tests/rooms.txt" ] || { echo 'tests/rooms.txt: the table of rooms is missing'; return; }
  (cd "$1" && awk -f "$here/rooms.awk" tests/rooms.txt \
    $(sources . core models parallel io experiments))
  sed '/^#/d; s/:/ /' "$1/tests/rooms.txt" |
    awk '{ for (i = 2; i <= NF; ++i) print $i, $1 }' | tsort 2>&1 >/dev/null |
    sed 's/^tsort: *//; s/^-:/tests\/rooms.txt:/'
}

# file_circles ROOT: finds files that include each other, directly or through other files.
file_circles() {
  (cd "$1" && sources . core models parallel io experiments |
    xargs -r grep -HoE '^[ 	]*#[ 	]*include "[^"]+"') |
    sed -E 's/:[ 	]*#[ 	]*include "/ /; s/"$//' | tsort 2>&1 >/dev/null |
    sed 's/^tsort: *//; s/^-:/includes:/'
}

# waits ROOT: finds calls that may wait forever without a reason in ROOT/tests/waits.txt.
waits() {
  (cd "$1" && for table in tests/waits.txt; do [ ! -f $table ] || echo $table; done &&
    sources . core models parallel io experiments) | (cd "$1" && xargs -r awk -f "$here/waits.awk")
}

# violations ROOT: prints one line per violation.
violations() {
  all='core models parallel io experiments tests'
  none='NOTHING'
  forbid "$1" 'mpi.h only in parallel/comm/mpi_*' 'mpi\.h|mpi-ext\.h|mpi\.hpp' 'parallel/comm/mpi_' $all
  forbid "$1" 'nccl.h only in parallel/comm/nccl_* and its emulation' 'nccl\.h|nccl_device' \
    'parallel/comm/nccl_|tests/core/cuda_emulation/' $all
  forbid "$1" 'CUDA headers only in core/cuda/, its emulation, and parallel/comm/nccl_*' \
    'cuda[a-zA-Z_]*\.h|cuda/|cublas|cudnn|cutlass|nvml|nvtx|cooperative_groups' \
    'core/cuda/|tests/core/cuda_emulation/|parallel/comm/nccl_' $all
  forbid "$1" 'HDF5 headers only in io/' 'hdf5|H5[A-Z]' 'io/' $all
  forbid "$1" 'headers of libarchive and image libraries only in their files of io/images/' \
    'archive(_entry)?\.h|png\.h|jpeglib\.h' 'io/images/(tar|image)_' $all
  forbid "$1" 'oneDNN headers only in core/cpu/' 'dnnl|oneapi/' 'core/cpu/' $all
  forbid "$1" 'CLI11 (the command line) only in experiments/commands/' 'CLI/' 'experiments/commands/' $all
  forbid "$1" 'the program must not include tests' 'tests/' $none core models parallel io experiments
  forbid "$1" 'plans are pure: no threads, no clock' \
    'thread>|mutex>|chrono>|atomic>|future>|core/clock' $none \
    parallel/plan parallel/simulate parallel/generate parallel/schedules parallel/partitioners \
    parallel/exchanges parallel/policies parallel/predict parallel/repartition
  forbid "$1" 'predictions read no files' 'nlohmann/|toml|fstream>|filesystem>' $none parallel/predict
  refuse "$1" 'options without effect are reported by the tables of keys and options, and by studies' \
    '^[^/]*".*has no effect' 'experiments/(config/config|commands/command|study/sampler)\.cc' \
    core models parallel io experiments
  refuse "$1" 'only the entry of a registry names the keys that it reads' \
    '"(data\.(windows|mean|deviation|crop|flip|stride)|freeze\.(max|unfreeze|unfreeze_rise)|elastic\.(depth|replicas|schedule|least_gain))"' \
    'experiments/config/|io/(datasets|images|labelled)/|parallel/(policies|repartition)/' \
    core models parallel io experiments
  colors "$1"
  program='core models parallel io experiments'
  spelled "$1" 'the files of a run are named in io/run_files.h' \
    'config\.toml|(metrics|events|launches)\.jsonl|(result|costs|trace)\.json|report\.html|trace-[^" ]*\.json' \
    'io/run_files\.h' $program
  spelled "$1" 'the files of a study are named in experiments/study/study_folder.h' \
    'study\.toml|results\.csv|(trial|requeues)\.json|submissions\.jsonl|slurm\.txt|overrides\.toml' \
    'experiments/study/study_folder\.h' $program
  spelled "$1" 'the files of a checkpoint are named in io/checkpoint/checkpoint_format.h' \
    'manifest\.(json|sha256)' 'io/checkpoint/checkpoint_format\.h' $program
  refuse "$1" 'read files with io/file.h and io/log_lines.h, which never wait and have a limit; streams only for /proc' \
    'ifstream [a-z]+\(|fopen\(|std::fstream' \
    'core/process_state\.cc|experiments/(doctor/cluster_probe|launcher/child_process|machine/(machine|program))\.cc|io/file_lock\.cc' \
    $program
  refuse "$1" 'parse text from untrusted files with io/strict_json.h, which limits its depth' '[jJ]son::parse\(' \
    'io/strict_json\.|experiments/(hugging_face/published_|machine/gather|run/checkpoint_writer)' $program
  rooms "$1"
  file_circles "$1"
  waits "$1"
  defined_twice "$1" $all
  for path in "$1"/*; do
    case ${path##*/} in
      meson.build|meson_options.txt|core|parallel|models|io|experiments|tests|README.md|LICENSE) ;;
      build*|runs) ;;  # not part of the source: listed in .gitignore
      *) echo "${path##*/}: not allowed at the top level" ;;
    esac
  done
}

# must_fail FILE TEXT [FILE TEXT]: a tree with these files breaks a rule. must_pass: it breaks none.
# The table of rooms is $table or, if empty, one line per folder that allows nothing. The table of
# waits is $waits; if empty, there is none.
made_up() {
  mkdir -p "$scratch/tests"
  if [ -n "${table-}" ]; then
    printf '%s\n' "$table"
  else
    for file; do echo "$file"; done | sed -n 's|^\([a-z_]*\(/[a-z_]*\)*\)/[a-z_]*\.[a-z]*$|\1:|p' | grep -v '^tests\|^build\|^src' | sort -u
  fi > "$scratch/tests/rooms.txt"
  [ -z "${waits-}" ] || printf '%s\n' "$waits" > "$scratch/tests/waits.txt"
  while [ $# -gt 1 ]; do
    mkdir -p "$scratch/${1%/*}" && printf '%s\n' "$2" > "$scratch/$1"
    shift 2
  done
  found=$(violations "$scratch")
  rm -rf "${scratch:?}"/*
}
must_fail() {
  made_up "$@"
  [ -n "$found" ] || { echo "self-test: '$2' in $1 should be refused"; bad=1; }
}
must_pass() {
  made_up "$@"
  [ -z "$found" ] || { echo "self-test: '$2' in $1 should be allowed: $found"; bad=1; }
}

# in_namespace LINE [" NAME"]: puts the line inside `namespace concertina` or one nested in it.
in_namespace() {
  printf 'namespace concertina {\n%s\n%s\n};\n%s\n}  // namespace concertina\n' \
    "${2+namespace$2 {}" "$1" "${2+\}  // namespace$2}"
}

bad=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
must_fail core/a.h '#include <mpi.h>'
must_fail parallel/a.cc '# include "mpi.h"'
must_fail parallel/comm/mpi_a.cc '#include <nccl.h>'
must_fail core/cpu/a.cc '#include <cuda_runtime.h>'
must_fail models/a.cc '#include <cublasLt.h>'
must_fail tests/core/cuda_a_test.cc '#include <cuda_runtime_api.h>'
must_fail experiments/a.cc '#include <hdf5.h>'
must_fail core/a.cc '#include <oneapi/dnnl/dnnl.hpp>'
must_fail core/a.cc '#include "models/model.h"'
must_fail experiments/a.cc '#include "tests/mpi_test.h"'
must_fail experiments/run/a.cc '#include <CLI/CLI.hpp>'
must_fail experiments/a/a.cc '#include "experiments/b/b.h"'
must_fail parallel/schedules/a.cc '#include <thread>'
table='io: models'
must_fail io/a.cc 'int x;'
must_pass io/a.cc '#include "models/model.h"'
must_fail models/a.cc 'int x;' io/a.cc '#include "models/model.h"'
table='io: models
models: io'
must_fail models/a.cc '#include "io/file.h"' io/a.cc '#include "models/model.h"'
table=
must_fail core/a.cc "$(yes 'int x;' | head -n 5001)"
must_fail core/a.h '#include "core/b.h"' core/b.h '#include "core/a.h"'
must_fail parallel/predict/a.cc '#include <nlohmann/json.hpp>'
must_fail experiments/run/a.cc 'throw_input(fmt::format("{} has no effect", key));'
must_pass experiments/config/config.cc 'throw_input(fmt::format("{} has no effect", key));'
must_pass io/a.h '/// A flag that has no effect.'
must_fail models/a.cc 'if (key == "data.crop") return;'
must_pass io/datasets/a.cc 'constexpr auto kKeys = {"data.crop"};'
must_fail experiments/a.cc 'const char* style = "a { color: #1d2129 }";'
must_fail experiments/a.cc 'add(" fill=\"#fff\"");'
must_fail io/a.cc 'f("config.toml");'
must_fail experiments/a.cc 'f(directory + "/metrics.jsonl");'
must_fail experiments/commands/a.cc 'f("{}/results.csv");'
must_fail io/a.h 'f("manifest.json");'
must_fail experiments/a.cc '  std::ifstream file(path);'
must_fail io/a.cc '  const auto json = nlohmann::json::parse(text, nullptr, false);'
must_pass io/run_files.h 'f("config.toml");'
must_pass io/a.cc 'f("there is no config.toml here");'
must_fail src/a.cc 'int x;'
must_fail core/a.h "$(in_namespace 'struct X {')" io/a.h "$(in_namespace 'class X final : public Y {')"
must_fail core/a.h "$(in_namespace 'enum class X { a };')" io/a.cc "$(in_namespace 'template <class T> struct X {')"
must_pass core/a.h "$(in_namespace 'struct X {')" io/a.h "$(in_namespace 'struct X;')"
must_pass core/a.h "$(in_namespace 'struct X {' '')" io/a.cc "$(in_namespace 'struct X {')"
must_pass core/a.h "$(in_namespace 'struct X {' ' a')" io/a.cc "$(in_namespace 'struct X {' ' b::c')"
must_fail parallel/comm/mpi_a.cc '  MPI_Barrier(local);'
must_fail io/a.cc '  while (waitpid(pid, &status, 0) < 0) {'
must_fail io/a.cc '  fcntl(descriptor, F_SETLKW, &lock);'
must_fail io/a.cc '  const ssize_t got = ::recv(socket, bytes, 1, 0);'
must_fail core/a.cc '  thread_.join();'
must_fail core/a.cc '  std::future<int> answer;'
must_fail core/a.cc '  wake_.wait(lock, [] { return true; });'
must_pass core/a.cc '  waitpid(pid, &status, WNOHANG);  // MPI_Barrier(local)'
must_pass core/a.cc '  work.wait(); wake_.wait_for(lock, limit); transport_.connect(peers); table.select(x);'
waits='core/a.cc: join wait: it ends by itself'
must_pass core/a.cc '  thread_.join(); gate_.wait(old);'
must_fail core/a.cc '  thread_.join();'
must_fail core/a.cc '  thread_.join(); gate_.wait(old);' core/b.cc '  thread_.join();'
waits='core/a.cc: join:'
must_fail core/a.cc '  thread_.join();'
waits=
must_pass parallel/comm/mpi_a.h '#include <mpi.h>'
must_pass parallel/comm/nccl_a.cc '#include <cuda_runtime.h>'
must_pass core/cuda/a.cu '#include <cuda_runtime.h>'
must_pass tests/core/cuda_emulation/a.h '#include <cuda_runtime_api.h>'
must_pass io/a.h '#include <hdf5.h>'
must_pass io/export/a.cc '#include <google/protobuf/message.h>'
must_pass core/cpu/a.cc '#include <oneapi/dnnl/dnnl.hpp>'
must_pass models/a.cc '#include "core/model/stage.h"  // not "parallel/plan/layout.h"'
must_pass experiments/a.cc '#include "parallel/comm/mpi_environment.h"'
must_pass tests/a.cc '#include "io/file.h"'
must_pass experiments/commands/train.cc '#include "experiments/commands/command.h"'
must_pass build-x/a.cc '#include <mpi.h>'

found=$(violations "$1")
if [ -n "$found" ]; then
  echo "$found"
  bad=1
fi
exit $bad
