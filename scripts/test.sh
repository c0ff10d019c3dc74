#!/usr/bin/env bash
# Runs the tests of the packages named, or of all: the everyday tier, or with TIER=nightly all tests
# (tests/tier). Each phase has its wall time; all of them run, even if one fails.
# Packages whose results Go keeps are answered from its cache when nothing has changed. `make check` vets the tests.
#
#   scripts/test.sh [package…]     TIER=nightly; TEST_TIMEOUT=20m: how long one package may take
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- ./...
export GOFLAGS=${GOFLAGS:--trimpath -gcflags=all=-dwarf=false} # as in the Makefile
# Compilers and linkers that collect garbage rarely take a sixth less processor time. Tests run without these settings,
# and not through -exec: with it Go keeps no results.
rarely=(GOGC=400 GOMEMLIMIT=3GiB)
tier=${TIER:-everyday}
tags=()
case $tier in
everyday) ;;
nightly) tags=(-tags nightly) ;;
*)
	echo "error: TIER is $tier, and must be everyday or nightly" >&2
	exit 2
	;;
esac

# Every package is in one list, except that one with tests that the race detector must not see (//go:build !race) is
# in two. The lists are of import paths, one a line, sorted.
module=$(go list -m)
below() { grep -E "^$module/($1)(/|\$)" <<<"$packages" || true; }
minus() { comm -23 <(echo "$1") <(echo "$2" | sort -u) | sed '/^$/d'; }
both() { comm -12 <(echo "$1") <(echo "$2" | sort -u) | sed '/^$/d'; }
packages=$(go list "${tags[@]}" "$@" | sort -u)

# Clusters of real programs have leases of a few seconds. They wait for most of their time, so by day they run side by
# side.
attack=$(below tests/attack)   # the attackers send as much as they can
senses=$(below tests/senses)
real='provider/(libvirt|lxd|balancer/(haproxy|command))' # libvirt, LXD, HAProxy and nginx are programs as well
[ "$tier" = everyday ] || real='provider/(libvirt|lxd|openstack|balancer/(haproxy|command))' # and so is, at night, OpenStack
programs=$(below "tests/(bench|detect|e2e|secrets)|$real") # few programs each
faults=$(both "$(below tests/faults)" "$module/tests/faults") # its parts are tested with the others
clusters=$(printf '%s\n' "$attack" "$programs" "$senses" "$faults")
alone=$(minus "$packages" "$clusters")

# Nothing runs at once in these: the race detector has nothing to find, and makes them five times slower.
pure=$(below 'store|provider|coordinator/(plan|evidence|sim|keyfile|encryption|reason|story|claim|recovery)|tests/sim|agent/smbios|cmd/(groupfile|groupdiff|scenario|foresee|bench/planning)')
pure=$(grep -vE "^$module/(store|provider)/" <<<"$pure" || true) # adapters
pure=$(printf '%s\n' "$pure" "$(below 'provider/settings')" | sort -u)
# By day these are not compiled for the race detector: each needs modules that no other package needs, and which the
# programs need compiled without it anyway. Processor time of compiling them for it, on an empty cache, of two processors:
# EC2's SDK 92 s for provider/ec2 and 9 s for the target groups, Envoy's messages and etcd 82 s for xdsserver. They start
# few goroutines of their own (a gate, batches of calls, one watch), and the night sees them. The browser's protocol
# (12 s) is needed by coordinator/web/browser_test.go alone, which is built without the detector.
costly=$(below 'coordinator/discovery/xdsserver|provider/(ec2|amazon|balancer/targetgroup)')
# By day the race detector sees the agent, the coordinator and the adapters. At night it sees the programs and the
# tests' own parts as well, and the database's adapters: they make it compile all of etcd.
raced=$(below 'agent|coordinator|provider|store/memstore|store/storetest|store/cron')
[ "$tier" = everyday ] || { raced=$alone; costly=; }
raced=$(minus "$(both "$alone" "$raced")" "$(printf '%s\n' "$pure" "$costly")")
# Tests in virtual time (testing/synctest) run on one processor there. All timers of a bubble share one context of the
# race detector, and two threads in it at once break it: "ThreadSanitizer: CHECK failed", or a crash
# (https://go.dev/issue/78156). Races are still found: the detector checks what is ordered before what, not
# what happens to run at once.
bubbles=''
if [ -n "$raced" ]; then
	# shellcheck disable=SC2086 # import paths have no spaces
	bubbles=$(CGO_ENABLED=1 go list -race "${tags[@]}" -test -f '{{range .Deps}}{{if eq . "testing/synctest"}}{{$.ImportPath}}{{"\n"}}{{end}}{{end}}' $raced |
		sed -n 's/\.test$//p' | sort -u)
fi
bubbles=$(both "$raced" "$bubbles")
plain=$(minus "$alone" "$raced")

work=$(mktemp -d)
trap 'kill -- $(jobs -p | sed "s/^/-/") 2>/dev/null || true; rm -rf "$work"' EXIT

# phase runs a command, and records how long it took and whether it failed.
phase() { # name command…
	local name=$1 began=$SECONDS result=ok
	shift
	printf '=== %s %s\n' "$(date +%H:%M:%S)" "$name"
	"$@" || result=FAILED
	printf '=== %s %s: %s, %d s\n' "$(date +%H:%M:%S)" "$name" "$result" $((SECONDS - began))
	printf '%6d s  %-6s  %s\n' $((SECONDS - began)) "$result" "$name" >>"$work/phases"
}

# in_list runs the tests of the packages in a list.
in_list() { # list flag…
	local names
	mapfile -t names <<<"$1"
	shift
	go test -vet=off -toolexec "env ${rarely[*]}" -timeout "${TEST_TIMEOUT:-20m}" "${tags[@]}" "$@" "${names[@]}"
}

# Without the race detector tests are compiled as `make build` compiles the programs, so that both share Go's cache.
in_list_plain() { CGO_ENABLED=0 in_list "$@"; }
in_list_raced() { CGO_ENABLED=1 in_list "$@" -race; }
# Tests that start real programs are never answered from the cache, which does not know the programs.
in_list_clusters() { in_list_plain "$@" -count=1; }
in_list_clusters_raced() { in_list_raced "$@" -count=1; }

# unseen runs the tests in files that a build constraint keeps from the race detector, of packages that it sees.
unseen() {
	local package dir files name tests failed=0
	while read -r package dir; do
		grep -qsE '^//go:build .*!race' "$dir"/*_test.go || continue
		files=$(comm -23 <(test_files "$package") <(CGO_ENABLED=1 test_files -race "$package"))
		tests=$(for name in $files; do sed -nE 's/^func ((Test|Fuzz)[A-Za-z0-9_]*)\(.*/\1/p' "$dir/$name"; done | paste -sd '|')
		[ -z "$tests" ] || in_list_plain "$package" -run "^($tests)\$" </dev/null || failed=1
	# shellcheck disable=SC2086 # import paths have no spaces
	done < <(go list -f '{{.ImportPath}} {{.Dir}}' $raced)
	return "$failed"
}
test_files() { go list "${tags[@]}" -f '{{join .TestGoFiles "\n"}}{{"\n"}}{{join .XTestGoFiles "\n"}}' "$@" | sed '/^$/d' | sort; }

# The programs under test are built once, for all packages.
prepare() { CGO_ENABLED=0 env "${rarely[@]}" go run ./tests/stage/prepare "$work/programs"; }
if [ -n "$(both "$packages" "$(below 'tests/(detect|e2e|secrets|attack|senses|faults)')")" ]; then
	phase 'build the programs' prepare
	export LEASEHOLD_TEST_PROGRAMS=$work/programs
fi

# Tests that compute run at low priority beside clusters of programs, which wait for most of their time: so no processor
# idles, and no lease starves. At idle priority they would starve themselves: a tenth of a processor is theirs at the
# worst. They go in two lanes, since each waits at times as well: for an etcd, or for the last package of a phase. What
# they print is shown when they have ended.
lane_of_virtual_time() {
	[ -z "$bubbles" ] || phase 'virtual time, raced' in_list_raced "$bubbles" -cpu 1
	[ -z "$raced" ] || phase 'what the race detector must not see' unseen
}
lane_of_plain() {
	[ -z "$plain" ] || phase 'not raced' in_list_plain "$plain" -p 4 # half of them wait for an etcd
}
start_lane() { # name: its process ID is in $!
	set -m # it gets a process group of its own, so that it ends whole when this is interrupted
	(
		renice -n 10 -p "$BASHPID" >/dev/null
		"$1"
	) >"$work/$1" 2>&1 &
	set +m
}
# hurry gives the lanes the usual priority once nothing else runs: beside other programs that compute, as much as they
# get. Only root may do that; without it they just take longer.
hurry() {
	# shellcheck disable=SC2046 # process groups
	renice -n 0 -g $(jobs -pr) >/dev/null 2>&1 || true
}
start_lane lane_of_virtual_time
virtual=$!
start_lane lane_of_plain
unraced=$!

others=$(minus "$raced" "$bubbles")
if [ "$tier" = everyday ]; then
	# Go starts them in this order: the longest first.
	longest=$(below 'tests/e2e')
	together=$(printf '%s\n' "$longest" "$attack" "$senses" "$(minus "$programs" "$longest")" | sed '/^$/d')
	[ -z "$together" ] || phase 'attack, senses and programs end to end' in_list_clusters "$together" -p 4
else
	wait "$virtual" "$unraced" || true # at night nothing is in a hurry
	[ -z "$attack" ] || phase 'attack' in_list_clusters "$attack"
	# End to end includes packages, built twice for each architecture, on an empty cache for some twenty minutes.
	[ -z "$programs" ] || phase 'programs end to end' in_list_clusters_raced "$programs" -p 3 -timeout 75m
	[ -z "$senses" ] || phase 'senses' in_list_clusters "$senses"
fi
[ -z "$faults" ] || phase 'faults' in_list_clusters "$faults" -timeout 20m
[ -z "$others" ] || phase 'raced' in_list_raced "$others"
hurry
wait "$virtual" "$unraced" || true
cat "$work/lane_of_virtual_time" "$work/lane_of_plain"

printf '\n%s tier, wall time of each phase:\n' "$tier"
touch "$work/phases"
cat "$work/phases"
printf '%6d s  in all (the phases that compute run beside the others)\n' "$SECONDS"
! grep -q ' FAILED ' "$work/phases"
