#!/usr/bin/env bash
# The nightly tier: all tests, and the long runs. Phases run one after the other, each with its wall time; they go on
# after one that fails, and the end says which failed.
#
#   scripts/nightly.sh [phase…]     by default all of them
set -euo pipefail
cd "$(dirname "$0")/.."

tests() {
	scripts/openstack.sh install || true # some minutes the first time; the test says what is missing
	TIER=nightly TEST_TIMEOUT=45m scripts/test.sh
}
worlds() { make sim SEEDS=10000; }
senses() { make senses AGENTS=1000; }
faults() { make faults SEEDS=200 && make faults SEEDS=50 SERVERS=1; }
containers() { make containers SEEDS=10; }
mutants() { make mutants; }
planner() { scripts/break-planner.sh; }
mutations() { # of the packages whose survivors are all listed
	local package status=0
	for package in agent/session store coordinator/evidence; do
		make mutate PACKAGE=$package || status=1
	done
	return $status
}
failover() { make failover; }
detection() { make bench-detect; }
compare() { make bench-compare; }
fuzz() { make fuzz FUZZTIME=2m; }
soak() { make soak FOR=1h && make soak-servers FOR=1h; }
servers() { make servers SEEDS=20; }

all=(tests worlds senses faults servers containers mutants planner mutations failover detection compare fuzz soak)
[ $# -gt 0 ] || set -- "${all[@]}"
for phase in "$@"; do
	if [[ " ${all[*]} " != *" $phase "* ]]; then
		echo "error: there is no phase $phase; next: name some of: ${all[*]}" >&2
		exit 2
	fi
done

results=() failed=0
for phase in "$@"; do
	began=$SECONDS result=ok
	printf '=== %s nightly: %s\n' "$(date +%H:%M:%S)" "$phase"
	"$phase" || result=FAILED failed=1
	results+=("$(printf '%6d s  %-6s  %s' $((SECONDS - began)) "$result" "$phase")")
	printf '=== nightly: %s\n' "${results[-1]}"
done
printf '\nnightly tier, wall time of each phase:\n'
printf '%s\n' "${results[@]}"
printf '%6d s  in all\n' "$SECONDS"
exit "$failed"
