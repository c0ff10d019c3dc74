#!/usr/bin/env bash
# Looks for known vulnerabilities in the code that the programs reach, by Go's own database. GOVULNDB names another
# copy of it (file:///… works too).
set -euo pipefail
cd "$(dirname "$0")/.."

database=${GOVULNDB:-https://vuln.go.dev}
case $database in
http*)
	if ! curl -fsS --max-time 20 -o /dev/null "$database/index/db.json"; then
		echo "error: the database of vulnerabilities, $database, cannot be reached: nothing was looked at" >&2
		echo "next: run this where it can be, or name a copy: GOVULNDB=file:///path/to/vulndb make vuln" >&2
		exit 1
	fi
	;;
esac
exec go tool -modfile=scripts/tools/vuln/go.mod govulncheck -db "$database" ./...
