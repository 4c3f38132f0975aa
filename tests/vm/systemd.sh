#!/usr/bin/env bash
# scx_reveille.service under a real systemd, by hand: boots Debian 13 in QEMU twice, with what `make install-scx` installs,
# and runs systemd/check.sh in it. Needs root, mmdebstrap and e2fsprogs. It takes 5 minutes, and the first time as many
# more for 100 MB of packages, which stay in target/vm/systemd.
#
#   make scx && sudo KERNEL=6.18 tests/vm/systemd.sh
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=target/vm/systemd
mkdir -p "$work"
scripts/need.sh python3 qemu bpftool zstd
[ "$(id -u)" = 0 ] || { echo "tests/vm/systemd.sh: not root: run it with sudo" >&2; exit 2; }
for tool in mmdebstrap mkfs.ext4; do
    command -v $tool >/dev/null || { echo "tests/vm/systemd.sh: $tool is missing: apt-get install mmdebstrap e2fsprogs" >&2; exit 2; }
done
kernel=$(tests/vm/kernel.py ${KERNEL:+--kernel "$KERNEL"})
[ -e "$work/base.tar" ] || {
    mmdebstrap --quiet --variant=minbase --include=systemd-sysv,dbus,kmod,udev trixie "$work/new.tar"
    mv "$work/new.tar" "$work/base.tar"
}

root=$(mktemp -d "$work/root.XXXX")
trap 'rm -rf "$root" "$work/disk"' EXIT
tar -C "$root" -xf "$work/base.tar"
make --no-print-directory install-scx PREFIX=/usr DESTDIR="$PWD/$root" >/dev/null
install tests/vm/systemd/check.sh "$root/check.sh"
cat >"$root/etc/systemd/system/check.service" <<'UNIT'
[Service]
Type=oneshot
ExecStart=/check.sh
StandardOutput=journal+console
TimeoutStartSec=infinity
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../check.service "$root/etc/systemd/system/multi-user.target.wants/"
# Another scheduler, as scx.service of other projects starts it.
printf '[Service]\nExecStart=/bin/bash -c "exec scx_reveille --base v6.4"\n' >"$root/etc/systemd/system/scx.service"
rm -f "$work/disk"
truncate -s 1G "$work/disk"
mkfs.ext4 -q -d "$root" "$work/disk"

# The kernel has NVMe and ext4 built in; other disks are modules.
timeout --foreground 900 qemu-system-x86_64 -no-user-config -nodefaults -display none -machine pc -accel tcg,thread=multi \
    -cpu max,vendor=GenuineIntel,-la57 -smp 4,sockets=2,cores=2 -m 1G -serial stdio \
    -drive "file=$work/disk,if=none,id=disk,format=raw,cache=unsafe" -device nvme,serial=1,drive=disk \
    -kernel "$kernel/vmlinux" -append "console=ttyS0 root=/dev/nvme0n1 rw quiet panic=-1 lpj=20000000 \
    tsc=reliable mitigations=off nokaslr audit=0 rcupdate.rcu_cpu_stall_timeout=120 watchdog_thresh=60" \
    </dev/null | tee "$work/log" | grep --line-buffered -a -o 'systemd: .*' || true
# Each check.sh has its `expect`s, and the second boot ends with the last word.
! grep -a -q 'systemd: FAILED' "$work/log" && grep -a -q 'systemd: all done' "$work/log"
