#!/usr/bin/env bash
# Runs `go mod tidy` in the project's module and in each tool's. With -diff nothing is written: the
# differences are shown and are a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
for file in go.mod scripts/tools/*/go.mod; do
	(cd "$(dirname "$file")" && go mod tidy "$@") || {
		echo "error: $file is not tidy" >&2
		failed=1
	}
done

if [ "$failed" -ne 0 ]; then
	echo "next: make fix" >&2
	exit 1
fi
