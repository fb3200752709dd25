#!/usr/bin/env bash
# Emulates hosts on one machine: network namespaces with their own names, links and /dev/shm. Needs root and
# iproute2. Processes, files, memory and cores are the machine's. $HOSTS_NAME separates sets of hosts.
set -euo pipefail
set=${HOSTS_NAME:-hosts$$} net=10.79.0 tries=100
root=/tmp/$set verb=${1:-} host=${2:-}

usage="emulated_hosts.sh up COUNT | down | on HOST COMMAND... | agent HOST COMMAND... (a remote shell, for mpirun)
       | cut HOST | mend HOST (its cable) | power-off HOST (all that runs there is gone at once) | fast HOST
       | slow HOST [50mbit [PEER]] (what it sends, to that host alone)"
fail() { echo "emulated_hosts.sh: $*" >&2; exit 2; }
each() { ls "$root" 2>/dev/null | grep '^h[0-9]*$' || true; }
kill_all() { # host
  local try
  for try in $(seq $tries); do
    [ -n "$(ip netns pids "$set-$1")" ] || return 0
    kill -9 $(ip netns pids "$set-$1") 2>/dev/null || true
    sleep 0.02
  done
  fail "processes of $1 do not exit"
}
down() {
  for host in $(each); do
    kill_all "$host"
    umount "$root/$host" 2>/dev/null || true
    ip netns delete "$set-$host" 2>/dev/null || true
  done
  ip netns delete "$set-switch" 2>/dev/null || true
  rm -rf "$root"
}
up() { # how many
  down
  mkdir -p "$root"
  ip netns add "$set-switch"
  ip -n "$set-switch" link add bridge type bridge
  ip -n "$set-switch" link set bridge up
  echo "127.0.0.1 localhost" >"$root/names"
  for number in $(seq "$1"); do
    host=h$number
    mkdir -p "$root/$host"
    mount -t tmpfs "$set-$host" "$root/$host"
    ip netns add "$set-$host"
    ip -n "$set-switch" link add "$host" type veth peer name eth0 netns "$set-$host"
    ip -n "$set-switch" link set "$host" master bridge up
    ip -n "$set-$host" address add "$net.$number/24" dev eth0
    ip -n "$set-$host" link set eth0 up
    ip -n "$set-$host" link set lo up
    echo "$net.$number $host" >>"$root/names"
  done
}
enter() { # host, command: this process becomes the command
  exec ip netns exec "$set-$1" unshare --uts --mount bash -c '
    hostname "$1"; mount --bind "$2/names" /etc/hosts; mount --bind "$2/$1" /dev/shm; shift 2; TMPDIR=/dev/shm exec "$@"' \
    enter "$1" "$root" "${@:2}"
}

[ $# -gt 0 ] || fail "$usage"
[ "$(id -u)" = 0 ] || fail "network namespaces need root"
command -v ip >/dev/null || fail "iproute2 is missing"
[ "$verb" = up ] || [ "$verb" = down ] || [ -d "$root/$host" ] || fail "unknown host '$host': $(each | xargs)"
case $verb in
  up) up "$host" ;;
  down) down ;;
  on) enter "$host" "${@:3}" ;;
  # A remote shell starts with its own environment.
  agent) export -n $(compgen -e | grep -vxE 'PATH|HOME|USER|LANG|HOSTS_NAME') && enter "$host" bash -c "${*:3}" ;;
  cut) ip -n "$set-switch" link set "$host" down ;;
  mend)
    ip -n "$set-switch" link set "$host" up
    for host in $(each); do ip -n "$set-$host" neighbour flush dev eth0; done ;;
  # Cuts the link first, so that no peer is notified, as in a power failure.
  power-off) ip -n "$set-switch" link set "$host" down && kill_all "$host" ;;

  slow)
    if [ -n "${4:-}" ]; then
      tc -n "$set-$host" qdisc replace dev eth0 root handle 1: htb
      tc -n "$set-$host" class add dev eth0 parent 1: classid 1:1 htb rate "$3" quantum 60000
      exec tc -n "$set-$host" filter add dev eth0 parent 1: protocol ip u32 match ip dst "$net.${4#h}/32" flowid 1:1
    fi
    tc -n "$set-$host" qdisc replace dev eth0 root tbf rate "${3:-50mbit}" burst 20000 latency 50ms ;;
  fast) tc -n "$set-$host" qdisc delete dev eth0 root ;;
  *) fail "$usage" ;;
esac
