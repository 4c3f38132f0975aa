#!/bin/sh
# What an administrator does with scx_reveille.service: in the guest of ../systemd.sh, once in each of two boots.
unit=scx_reveille
options=/etc/default/scx_reveille

# expect WORDS COMMAND...
expect() {
    words=$1
    shift
    if "$@"; then echo "systemd: passed: $words"; else echo "systemd: FAILED: $words"; fi
}
state() { [ "$(cat /sys/kernel/sched_ext/state)" = "$1" ]; }
# property NAME VALUE
property() { [ "$(systemctl show -P "$1" $unit)" = "$2" ]; }
# logged LEVEL WORDS
logged() { journalctl -b -u $unit -p "$1" -o cat | grep -qF -- "$2"; }
soon() {
    for _ in $(seq 120); do
        "$@" && return
        sleep 1
    done
    return 1
}
# started_with OPTIONS: whether it starts.
started_with() {
    echo "SCX_REVEILLE_OPTIONS=\"$1\"" >$options
    systemctl start $unit 2>/dev/null
}

if [ -e /second-boot ]; then
    expect 'an enabled unit starts at boot' soon systemctl is-active -q $unit
    expect 'and schedules' state enabled
    echo 'systemd: all done'
    exec systemctl poweroff
fi

expect 'the unit is valid' systemd-analyze verify --man=no $unit.service
expect 'it starts without a file of options' systemctl start $unit
expect 'it schedules once it has started' state enabled
expect 'the status says what runs' property StatusText 'scheduling 4 CPUs in 2 caches as v7.2'
expect 'it answers once it has started' sh -c 'scx_reveille set +SWQUEUE >/dev/null'
expect 'the status says what is set' property StatusText 'scheduling 4 CPUs in 2 caches as v7.2; set: +SWQUEUE'
expect 'nothing is unset' sh -c "! journalctl -b -u $unit | grep 'unset environment'"
systemd-run -q -u hog -p CPUQuota=20% sh -c 'while :; do :; done'
sleep 3
throttled() { timeout -s INT 10 scx_reveille --monitor 1 --json | grep -q '"nr_throttled":[1-9]'; }
expect 'CPUQuota= holds (from 6.17 on)' throttled
systemctl stop hog
pid=$(systemctl show -P MainPID $unit)
echo 0 >/sys/devices/system/cpu/cpu3/online
echo 1 >/sys/devices/system/cpu/cpu3/online
# A scheduler of before says that it is enabled until it has ended.
sleep 5
expect 'hotplug leaves it enabled' soon state enabled
expect 'in the same process' property MainPID "$pid"

kill -9 "$(systemctl show -P MainPID $unit)"
expect 'SIGKILL leaves the kernel its own scheduler' soon state disabled
expect 'it is started again after SIGKILL' soon state enabled
expect 'stop ends it' systemctl stop $unit
expect 'nothing schedules after stop' state disabled
expect 'nor is that a failure' property Result success

systemctl reset-failed $unit
refused_with() { ! started_with "$1"; }
expect 'a wrong option is refused' refused_with '--slice-us 5'
expect 'by exit code 2' property ExecMainStatus 2
expect 'for good' property ActiveState failed
expect 'with the reason, as an error' logged err '--slice-us 5 is out of bounds'
refused_with '--no-such-option'
expect 'so is an unknown one' logged err '--no-such-option'
expect 'options are read' started_with '--base v6.4 --with +SIS_SHORT'
expect 'and shown' property StatusText 'scheduling 4 CPUs in 2 caches as v6.4 +SIS_SHORT'

systemctl reset-failed $unit
systemctl start scx
expect 'scx.service takes its place' property ActiveState inactive
soon state enabled
expect 'it takes the place of scx.service' systemctl start $unit
expect 'which has ended' sh -c '! systemctl is-active -q scx'

systemctl -q enable $unit
touch /second-boot
echo 'systemd: rebooting'
exec systemctl reboot
