# Source this file in the bash, zsh or sh that launches runs: `. experiments/env.sh`. Puts the built
# programs on PATH and sets Open MPI's options: more ranks than cores are allowed, waiting ranks
# yield their cores, no rank is bound to a core, and root may launch.
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
# The same options for Open MPI 5. MPICH behaves like this by default.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
if [ "$(id -u)" = 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
