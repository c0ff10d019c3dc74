#!/usr/bin/env bash
# Runs every fuzz test of the packages, one after the other, each for FUZZTIME. A failing input is kept in testdata/fuzz beside the test, and is
# part of `go test` from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0 found=0
for package in $(go list "${@:-./...}"); do
	for test in $(go test -run '^$' -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		found=1
		echo "$package $test"
		go test -run '^$' -fuzz "^$test\$" -fuzztime "${FUZZTIME:-30s}" "$package" || failed=1
	done
done
if [ "$found" = 0 ]; then
	echo "error: there is no fuzz test in ${*:-./...}" >&2
	exit 1
fi
exit "$failed"
