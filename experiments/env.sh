# Sourced (bash, zsh or sh) in a shell that is to launch runs: `. experiments/env.sh`. Puts the built
# programs on PATH and tells Open MPI what it wants to know: more ranks than cores are meant, ranks
# that wait leave the cores to those that work, no rank is bound to a core, root may launch.
if [ -n "${BASH_SOURCE:-}" ]; then
  concertina_top=$(cd "$(dirname "$BASH_SOURCE")/.." && pwd)
elif [ -n "${ZSH_VERSION:-}" ]; then
  concertina_top=$(cd "$(dirname "${(%):-%x}")/.." && pwd)
else
  concertina_top=$PWD
fi
case ":$PATH:" in
  *":$concertina_top/build/experiments:"*) ;;
  *) PATH="$concertina_top/build/experiments:$PATH" ;;
esac
unset concertina_top
export PATH
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none
# As Open MPI 5 calls it. MPICH does so by itself.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
if [ "$(id -u)" = 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
