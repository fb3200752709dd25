# Sourced by quickstart.sh and tests/run.sh: installs what is missing, builds into build/.
# Expects `root` to be the top of the checkout.

packages=(meson ninja-build g++ pkg-config openmpi-bin libopenmpi-dev libhdf5-dev libdnnl-dev
  libboost-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libfmt-dev libspdlog-dev
  libssl-dev librandom123-dev libgtest-dev librapidcheck-dev libbenchmark-dev
  python3-h5py bible-kjv bible-kjv-text)

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
      printf '%s ' "$package"
  done
}

# Installs with apt where that is possible; elsewhere says what to install.
install_packages() {
  local missing sudo=
  if ! command -v apt-get >/dev/null; then
    echo "This is no Debian or Ubuntu: install what these packages hold, then run this again:" >&2
    echo "  ${packages[*]}" >&2
    command -v meson >/dev/null || exit 1
    return
  fi
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && sudo -v; then
      sudo=sudo
    else
      echo "Not root and no sudo: have these installed, then run this again:" >&2
      echo "  apt-get install $missing" >&2
      exit 1
    fi
  fi
  echo "installing: $missing"
  export DEBIAN_FRONTEND=noninteractive
  $sudo apt-get update -qq
  # shellcheck disable=SC2086
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
}

# build TARGET...: all of it without arguments.
build() {
  local cores
  cores=$(nproc)
  [ -f "$root/build/build.ninja" ] || meson setup "$root/build" "$root"
  ninja -C "$root/build" -j "$((cores < 8 ? cores : 8))" "$@"
}

# Open MPI as root wants to be told twice; ranks that wait leave the cores to those that work.
mpi_environment() {
  if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
}
