#!/usr/bin/env bash
# A small disk for tests of storage that is full or does not respond: ext4 in a file. Needs root.
# $DISK is its mount point.
set -euo pipefail
usage="DISK=FOLDER emulated_disk.sh up MEGABYTES | down | full | free (it again) | slow (answers nothing) | fast"
fail() { echo "emulated_disk.sh: $*" >&2; exit 2; }
[ -n "${DISK:-}" ] || fail "$usage"
image=$DISK.image filler=$DISK/filler

case ${1:-} in
  up)
    mkdir -p "$DISK"
    truncate -s "${2:?$usage}M" "$image"
    mkfs.ext4 -q -F -m 0 "$image"
    mount -o loop "$image" "$DISK" || { rm -rf "$image" "$DISK"; exit 1; } ;;
  down)
    fsfreeze -u "$DISK" 2>/dev/null || true
    umount "$DISK"
    rm -rf "$image" "$DISK" ;;
  # Fills all free space, to the last block.
  full) dd if=/dev/zero of="$filler" bs=64k 2>/dev/null || [ -e "$filler" ] || fail "cannot create a file in $DISK" ;;
  free) rm -f "$filler" ;;
  slow) fsfreeze -f "$DISK" ;;
  fast) fsfreeze -u "$DISK" ;;
  *) fail "$usage" ;;
esac
