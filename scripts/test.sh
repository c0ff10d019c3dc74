#!/usr/bin/env bash
# Runs the tests of the packages named, or of all, with the race detector; and without it what the detector does not get to see, or has
# nothing to see in. All runs are made, whatever comes of the first. What vet says of the tests is for `make check`.
#
#   scripts/test.sh [package…]     TEST_TIMEOUT=10m: how long one package may take
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- ./...
export CGO_ENABLED=1 # the race detector needs it; the lists must be of the same files

# A test binary that can play in virtual time runs on one processor. All timers of a synctest bubble share one context
# of the race detector, and two threads in it at once break it: "ThreadSanitizer: CHECK failed", or a crash
# (https://go.dev/issue/78156). On one processor one timer goes off after the other. Races are found all the same: the
# detector goes by what is ordered before what, not by what happens to run at once.
bubbles=$(go list -race -test -f '{{range .Deps}}{{if eq . "testing/synctest"}}{{$.ImportPath}}{{"\n"}}{{end}}{{end}}' "$@" |
	sed -n 's/\.test$//p' | sort -u)
packages=$(go list -race "$@" | sort -u)

# In the planner nothing runs at once: tests/bans_test.go keeps goroutines out of it. So there is no race to be found, and looking for one
# would make its many random groups five times slower.
alone=$(comm -12 <(echo "$packages") <(go list ./coordinator/plan | sort))
bubbles=$(comm -23 <(echo "$bubbles") <(echo "$alone"))

# Where real programs have leases of a few seconds, nothing that computes runs beside them: what starves there for seconds is lost, and rightly so.
programs=$(comm -12 <(echo "$packages") <(go list ./tests/bench ./tests/detect ./tests/e2e ./tests/secrets | sort)) # few programs each, which wait: side by side
senses=$(comm -12 <(echo "$packages") <(go list ./tests/senses))
# The same goes for the clusters of tests/faults. All that their members say goes through the test's own process, which the race detector would make slower
# than any network; its parts are tested with it by themselves.
faults=$(comm -12 <(echo "$packages") <(go list ./tests/faults))
# The enemies of tests/attack send as much as they can: with the race detector on them they would be slower than what they attack, which is in
# programs of its own in any case.
attack=$(comm -12 <(echo "$packages") <(go list ./tests/attack))
others=$(comm -23 <(echo "$packages") <(printf '%s\n' "$bubbles" "$alone" "$programs" "$senses" "$faults" "$attack" | sed '/^$/d' | sort))

# What a test file's build constraint keeps from the race detector is run without it: the tests in such files, or all of the package if they only
# say how many tries there are.
test_files() {
	go list -f '{{range .TestGoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}{{"\n"}}{{end}}' "$@" | sort
}
all=$(test_files "$@")
seen=$(test_files -race "$@")
unseen=$(comm -23 <(echo "$all") <(echo "$seen"))

# -count=1: tests that start the real programs must not be answered from the cache.
failed=0
run() { # packages, one a line; then flags
	local list=$1
	shift
	[ -n "$list" ] || return 0
	local names
	mapfile -t names <<<"$list"
	go test -count=1 -vet=off -timeout "${TEST_TIMEOUT:-10m}" "$@" "${names[@]}" || failed=1
}

run_unseen() {
	run "$alone"
	local package names
	for package in $(cut -d' ' -f1 <<<"$unseen" | sort -u); do
		names=$(sed -n "s|^$package /|/|p" <<<"$unseen" | xargs -d '\n' sed -nE 's/^func ((Test|Fuzz)[A-Za-z0-9_]*)\(.*/\1/p' | paste -sd '|')
		run "$package" ${names:+-run "^($names)\$"}
	done
}

# These compute, and wait a little: side by side, so that no processor idles while the last of a list ends. What the second says is shown when
# it has ended, whole.
said=$(mktemp)
set -m # the second has a process group of its own, so that it ends whole when this is interrupted
(
	run_unseen
	run "$others" -race
	exit "$failed"
) >"$said" 2>&1 &
second=$!
set +m
trap 'kill -- "-$second" 2>/dev/null || true; rm -f "$said"' EXIT
run "$bubbles" -race -cpu 1
wait "$second" || failed=1
cat "$said"

run "$attack" -p 1
run "$programs" -race -p 3
run "$senses" -race -p 1
run "$faults" -p 1 -timeout 20m # some hundred clusters
exit "$failed"
