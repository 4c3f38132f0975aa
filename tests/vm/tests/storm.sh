# CPU hotplug, affinities, forks and task groups that come and go, each alone and then all at
# once, while hogs and sleepers must go on getting their turns: tests/vm/storm.
# STORM_SECONDS is how long each lasts.
set -eu

: "${STORM_SECONDS:=5}"
for one in hotplug affinity fork cgroup; do
    storm --seconds "$STORM_SECONDS" "$one"
done
storm --seconds $((STORM_SECONDS * 2))
