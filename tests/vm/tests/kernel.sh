# The guest is what the other tests take it for: a kernel with sched_ext and no scheduler
# loaded, types for BPF, task groups with cpu.max.burst, and 16 CPUs as 2 sockets x 4 cores x
# 2 threads, a socket being a NUMA node.
set -eu

fail() { echo "kernel: $*"; exit 1; }

expect() { # WHAT WANTED FOUND
    [ "$2" = "$3" ] || fail "$1: $3, not $2"
}

cpu=/sys/devices/system/cpu
uname -r | awk -F. '{ exit !($1 > 6 || ($1 == 6 && $2 >= 12)) }' || fail "$(uname -r) is older than 6.12"
expect "sched_ext" disabled "$(cat /sys/kernel/sched_ext/state)"
[ -s /sys/kernel/btf/vmlinux ] || fail "no types for BPF in /sys/kernel/btf"
expect "online CPUs" 0-15 "$(cat $cpu/online)"
expect "sockets" 2 "$(cat $cpu/cpu*/topology/physical_package_id | sort -u | wc -l)"
expect "cores" 8 "$(cat $cpu/cpu*/topology/thread_siblings_list | sort -u | wc -l)"
expect "last-level caches" 2 "$(cat $cpu/cpu*/cache/index3/shared_cpu_list | sort -u | wc -l)"
expect "NUMA nodes" 0-1 "$(cat /sys/devices/system/node/online)"
expect "CPU 1" "may go offline" "$([ -w $cpu/cpu1/online ] && echo 'may go offline')"

echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/kernel-test
[ -w /sys/fs/cgroup/kernel-test/cpu.max.burst ] || fail "no cpu.max.burst"
rmdir /sys/fs/cgroup/kernel-test
echo "kernel: $(uname -r), 16 CPUs, sched_ext there and not in use"
