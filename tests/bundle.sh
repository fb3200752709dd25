#!/usr/bin/env bash
# Packs the built programs, the GPU checks and every library that a bare Linux machine lacks into
# one archive, for GPU machines without our packages and for clusters without root. It needs x86-64
# Linux and, for a GPU, NVIDIA's driver and cuBLASLt (from the CUDA toolkit, or from PyTorch, whose
# cuDNN and NCCL it then uses too).
# usage: bash tests/bundle.sh [--build DIR] [--fast] [OUT.tar.xz]   (--fast: weaker compression)
# There: tar -xf OUT.tar.xz && concertina-bundle/gpu_check.sh, or concertina-bundle/bin/concertina.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build
out=concertina-bundle.tar.xz
effort=-6
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=${2:?--build needs a directory}; shift 2 ;;
    --fast) effort=-0; shift ;;
    --help | -h) sed -n '2,7s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "bundle.sh: unknown option $1 (--build DIR, --fast)" >&2; exit 2 ;;
    *) out=$1; shift ;;
  esac
done
limit_mib=60

programs=("$build/experiments/concertina" "$build/tests/core/cuda_backend_test"
  "$build/tests/core/cuda_kernel_bench" "$build/tests/integration/cuda_training_test")
for program in "${programs[@]}"; do
  [ -x "$program" ] || { echo "bundle.sh: $program does not exist: run ninja -C $build" >&2; exit 2; }
done
grep -qa libcublasLt "$build/experiments/concertina" ||
  echo "bundle.sh: this build has no CUDA: the archive will not find a GPU" >&2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
top=$scratch/concertina-bundle
mkdir -p "$top"/{bin,lib,libexec,openmpi/plugins,openmpi/share,openmpi/etc,tests/integration}

mpirun=$(readlink -f "$(command -v mpirun)")
plugins=$(ompi_info --path pkglibdir --parsable | sed 's/.*://')
cp "${programs[@]}" "$top/libexec/"
cp "$mpirun" "$top/libexec/mpirun"
cp "$(dirname "$mpirun")/orted" "$top/libexec/orted"  # started by a program that runs without mpirun
strip "$top/libexec/"* 2> /dev/null || true

# Includes the loader and libc, which may be newer here than there. A driver's library may need
# parts of libc that current programs no longer link.
libraries() { ldd "$@" 2> /dev/null | awk '$3 ~ /^\// { print $3 }' | sort -u; }
libc_dir=$(dirname "$(libraries "$mpirun" | grep '/libc\.so')")
add_libraries() { xargs -r cp -nL -t "$top/lib"; }
libraries "$top/libexec/"* | add_libraries
for part in libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libresolv.so.2 libnss_files.so.2 \
  libnss_dns.so.2; do
  [ ! -e "$libc_dir/$part" ] || echo "$libc_dir/$part"
done | add_libraries
cp -L /lib64/ld-linux-x86-64.so.2 "$top/lib/"

# Open MPI's plug-ins that need only what is packed here: no fabrics of other vendors.
mpi_lib=$(dirname "$plugins")
for plugin in "$plugins"/mca_*.so; do
  missing=$(libraries "$plugin" | while read -r library; do
    case $library in
      "$mpi_lib"/libmca_common_* | */libpmix.so* | */libmunge.so* | */libhwloc.so* | */libevent*) ;;
      *) [ -e "$top/lib/${library##*/}" ] || echo "$library" ;;
    esac
  done)
  [ -z "$missing" ] || continue
  cp "$plugin" "$top/openmpi/plugins/"
  libraries "$plugin" | add_libraries
done
cp /usr/share/openmpi/help-* "$top/openmpi/share/" 2> /dev/null || true
strip --strip-unneeded "$top/lib/"*.so* "$top/openmpi/plugins/"*.so 2> /dev/null || true

cat > "$top/bin/launch" << 'END'
#!/bin/sh
# Runs the program of this name with the libraries of this folder, then those of the machine.
# CONCERTINA_LIBRARY_PATH lists folders with cuBLASLt and others, searched before the usual ones.
here=$(cd "$(dirname "$0")/.." && pwd)
cuda=$(for folder in /usr/local/nvidia/lib64 /usr/local/cuda/lib64; do printf ':%s' "$folder"; done)
# Tells Open MPI where it is now, and to use only what one machine needs.
export OPAL_PREFIX="$here/openmpi" OPAL_BINDIR="$here/bin" OPAL_PKGLIBDIR="$here/openmpi/plugins"
export OPAL_PKGDATADIR="$here/openmpi/share" OPAL_SYSCONFDIR="$here/openmpi/etc"
export PMIX_MCA_pcompress_base_silence_warning=1
export OMPI_MCA_pml="${OMPI_MCA_pml:-ob1}" OMPI_MCA_btl="${OMPI_MCA_btl:-self,vader,tcp}"
export OMPI_MCA_btl_vader_single_copy_mechanism="${OMPI_MCA_btl_vader_single_copy_mechanism:-none}"
command -v ssh > /dev/null || export OMPI_MCA_plm_rsh_agent=false  # not needed on one machine
if [ "$(id -u)" = 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
exec "$here/lib/ld-linux-x86-64.so.2" --argv0 "$0" --library-path \
  "$here/lib:${CONCERTINA_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}$cuda" \
  "$here/libexec/$(basename "$0")" "$@"
END
chmod +x "$top/bin/launch"
for program in "$top/libexec/"*; do ln -s launch "$top/bin/${program##*/}"; done

cp tests/gpu_check.sh "$top/"
mkdir -p "$top/share/concertina/python" && cp -r experiments/machines experiments/completion "$top/share/concertina/"
cp -r experiments/python/concertina "$top/share/concertina/python/"
cp -r tests/peers "$top/peers"
find "$top" -name __pycache__ -prune -exec rm -rf {} +
cp tests/shell_checks.sh "$top/tests/"
cp tests/integration/{device_test,training_checks}.sh "$top/tests/integration/"

tar -C "$scratch" -c concertina-bundle | xz -T0 $effort > "$out"
mib=$(awk -v bytes="$(stat -c %s "$out")" 'BEGIN { printf "%.1f", bytes / 1048576 }')
echo "$out: $mib MiB"
if awk -v mib="$mib" -v limit="$limit_mib" 'BEGIN { exit !(mib > limit) }'; then
  echo "bundle.sh: more than $limit_mib MiB" >&2
  exit 1
fi
