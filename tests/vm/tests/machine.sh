# `reveille machines host` reads this machine as it is, and `reveille compare` simulates on it:
# the command with its libraries is whole in the guest.
set -eu

reveille machines host --json >"$OUT/machine.json"
for found in '"cpus": 16,' '"cores": 8,' '"llcs": 2,' '"nodes": 2,' '"sockets": 2'; do
    grep -q "$found" "$OUT/machine.json" || {
        echo "machine: no $found in:"
        sed -n '/"topology"/,/}/p' "$OUT/machine.json"
        exit 1
    }
done
reveille compare --machine host --workload context_switch1 --load 4 --base v6.2 \
    --with +SIS_SHORT --repeats 2 --warmup 10ms --duration 5ms --json >"$OUT/compare.json"
grep -q '"load": 4' "$OUT/compare.json"
echo "machine: $(grep -o '"text": "[^"]*"' "$OUT/machine.json" | head -n 1)"
