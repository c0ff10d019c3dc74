#!/usr/bin/env bash
# Fails, with the difference, when generated code is not what its source gives. Generates into a
# directory of its own: the working tree is never touched.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

go tool -modfile=scripts/tools/proto/go.mod buf generate -o "$out"

# Both ways: a file generated now that is not in the tree, and one in the tree that nothing generates.
names=$({ (cd "$out" && find . -name '*.pb.go'); find ./agent -name '*.pb.go'; } | sort -u)
stale=0
for name in $names; do
	diff -u --label "$name" --label "$name (as generated now)" \
		"$([ -e "$name" ] && echo "$name" || echo /dev/null)" \
		"$([ -e "$out/$name" ] && echo "$out/$name" || echo /dev/null)" || stale=1
done

if [ "$stale" -ne 0 ]; then
	echo "error: generated code differs from its source" >&2
	echo "next: make generate" >&2
	exit 1
fi
