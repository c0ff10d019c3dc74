#!/usr/bin/env bash
# Runs the contract suite against every provider and writes docs/providers/promises.md: which promise was
# proved, failed or not proved. A provider whose suite does not run leaves its column out, and this fails.
#
#   scripts/promises.sh [nightly]     nightly: also the long ones
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/test-needs.sh

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
tags=()
[ "${1:-}" != nightly ] || tags=(-tags nightly)

status=0
LEASEHOLD_PROMISES=$results go test "${tags[@]}" -count=1 -timeout 60m ./provider/... \
	-run 'TestContract|TestOnAReal|KeepsTheContract' || status=1
LEASEHOLD_PROMISES=$results go test -count=1 -timeout 10m ./tests/e2e -run '^TestTheExampleInPython$' || status=1
go run ./tests/promises "$results" >docs/providers/promises.md.new
mv docs/providers/promises.md.new docs/providers/promises.md
echo "promises: wrote docs/providers/promises.md" >&2
exit $status
