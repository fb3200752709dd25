# Functions for quickstart.sh and tests/run.sh, which source this in the top folder of the checkout:
# install packages (with apt, only if any is missing), build, set the environment for mpirun (env.sh).

say() { printf '\n== %s\n' "$*"; }

# package_list FILE...: the packages listed in these files of experiments/install, on one line.
# shellcheck disable=SC2046
package_list() { (cd experiments/install && printf '%s ' $(sed 's/#.*//' "$@")); }

missing_packages() {
  local package
  for package in $(package_list "$@"); do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
      printf '%s ' "$package"
  done
}

# install_packages [FILE...]: installs the packages in the files (default: packages.txt) with apt if
# possible; otherwise prints what to install.
install_packages() {
  [ $# -gt 0 ] || set -- packages.txt
  local missing sudo=
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say 'This is not Debian or Ubuntu: install the contents of these packages, then rerun this command:'
    package_list "$@" && echo
    command -v meson >/dev/null && command -v mpirun >/dev/null  # continue if they seem to be installed
    return
  fi
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && sudo -v; then
      sudo=sudo
    else
      say 'Neither root nor sudo is available: ask an administrator to install these packages, then rerun this command:'
      echo "apt-get install $missing"
      return 1
    fi
  fi
  say "installing: $missing"
  # shellcheck disable=SC2086
  $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $missing
}

# configure [OPTION...]: sets up build/ with these Meson options unless it exists.
configure() { [ -f build/build.ninja ] || meson setup "$@" build; }

# build [TARGET...]: builds the targets (default: all).
build() {
  local jobs by_memory
  configure || return 1
  # A compiler job needs up to 1.5 GB.
  by_memory=$(awk '/^MemAvailable:/ { print int($2 / 1500000) }' /proc/meminfo)
  jobs=$(nproc)
  [ "$jobs" -le "$by_memory" ] || jobs=$by_memory
  [ "$jobs" -ge 1 ] || jobs=1
  ninja -C build -j "$jobs" "$@"
}

mpi_environment() { . experiments/env.sh; }
