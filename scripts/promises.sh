#!/usr/bin/env bash
# Runs the contract suite against every provider, one after the other, and writes docs/providers/promises.md: which
# promise was proved, failed or not proved, and when that was seen. What was found is kept in promises.json beside it.
#
#   scripts/promises.sh [name…]     by default all of the list below
#
# Each has a time limit. What it has not played by then is shown as not played. A run that is cut short goes on where it
# was: what was played with the same source of provider/ is not played again, unless FRESH=1.
set -euo pipefail
cd "$(dirname "$0")/.."

# name, package, test, limit, build tags
list='
memory         ./provider/fake      ^TestContract$                          3m
process        ./provider/process   ^TestContract$                          3m
exec           ./provider/exec      ^TestTheShellExampleKeepsTheContract$   3m
ec2            ./provider/ec2       ^TestContract$                          5m
openstack      ./provider/openstack ^TestContract$                          5m
lxd            ./provider/lxd       ^TestOnARealLXD$                        10m
exec-lxd       ./tests/e2e          ^TestTheExampleInPython$                10m
libvirt        ./provider/libvirt   ^TestOnARealLibvirt$                    10m
openstack-real ./provider/openstack ^TestOnARealOpenStack$                  25m  nightly
libvirt-guests ./provider/libvirt   ^TestTheContractWithGuestsInTwoZones$   25m  nightly
'
[ $# -gt 0 ] || mapfile -t names < <(awk 'NF {print $1}' <<<"$list")
[ $# -eq 0 ] || names=("$@")
for name in "${names[@]}"; do
	awk '{print $1}' <<<"$list" | grep -qxF "$name" || {
		echo "error: there is no $name; next: name some of:" $(awk '{print $1}' <<<"$list") >&2
		exit 2
	}
done
scripts/test-needs.sh

kept=docs/providers/promises.json
source=$(git ls-files -s provider | git hash-object --stdin)
git diff --quiet HEAD -- provider || source=$source-changed
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
go build -o "$results/promises" ./tests/promises

status=0
while read -r name package test limit tags; do
	[[ -n $name && " ${names[*]} " == *" $name "* ]] || continue
	if [ -z "${FRESH:-}" ] && "$results/promises" has "$kept" "$name" "$source" 2>/dev/null; then
		echo "promises: $name was played with this source" >&2
		continue
	fi
	mkdir "$results/$name"
	began=$SECONDS
	LEASEHOLD_PROMISES=$results/$name go test -tags "$tags" -count=1 -timeout "$limit" "$package" -run "$test" </dev/null || status=1
	echo "promises: $name took $((SECONDS - began)) s" >&2
	"$results/promises" keep "$kept" "$name" "$source" "$results/$name" || status=1
	"$results/promises" page "$kept" >docs/providers/promises.md.new
	mv docs/providers/promises.md.new docs/providers/promises.md
done <<<"$list"
exit $status
