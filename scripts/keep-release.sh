#!/usr/bin/env bash
# Keeps the source of a release in the tree, so that an upgrade from it can be tested without git history.
#
#   scripts/keep-release.sh COMMIT VERSION     for example: scripts/keep-release.sh v0.1 0.1
#
# Run it once a release is out, before anything is merged that belongs to the next one. It replaces
# tests/faults/previous/leasehold-*.tar.gz with what is needed to build the programs of COMMIT: the Go files that they and the cast of
# tests/stage are made of, tests left out; what is embedded in them; go.mod and go.sum; the protocol, against which
# `make check-protocol` compares the present one. The same commit always gives the same bytes.
#
# The modules that the release needs are not in it. They come from the module cache, like the present tree's, so the release has
# to be built with versions that the present go.sum knows: missing modules are reported, but are no failure here.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -ne 2 ]; then
	echo "usage: scripts/keep-release.sh COMMIT VERSION" >&2
	exit 2
fi
commit=$(git rev-parse --verify --end-of-options "$1^{commit}")
version=$2
if [[ ! $version =~ ^[0-9]+(\.[0-9]+)+$ ]]; then
	echo "error: $version is no version like 0.1 or 1.2.3" >&2
	exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/leasehold-$version
mkdir "$root"
git archive "$commit" | tar -x -C "$root"

# All source files of the programs, on every system, including files that are not built on this one.
(
	cd "$root"
	module=$(go list -m)
	go list -deps -f '{{if .Module}}{{if .Module.Main}}{{$dir := .ImportPath}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .IgnoredGoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}' \
		./cmd/leasehold ./cmd/leasehold-agent ./tests/stage/cast |
		sed -n "s|^$module/||p" | grep -v '_test\.go$'
	printf '%s\n' go.mod go.sum LICENSE buf.yaml agent/protocol/protocol.proto
) | sort -u >"$work/files"

kept=tests/faults/previous
mkdir -p "$kept"
rm -f "$kept"/leasehold-*.tar.gz
# gzip keeps no name and no time, and tar gives all files the commit's time and no owner.
tar --create --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rw,go=r \
	--mtime="@$(git show -s --format=%ct "$commit")" -C "$root" --transform="s|^|leasehold-$version/|" -T "$work/files" |
	gzip -9 -n >"$kept/leasehold-$version.tar.gz"

unknown=$(comm -23 <(awk '{print $1, $2}' "$root/go.sum" | sort -u) <(awk '{print $1, $2}' go.sum | sort -u))
if [ -n "$unknown" ]; then
	echo "note: the release needs modules that the present tree does not; it cannot be built offline:" >&2
	echo "$unknown" >&2
fi
echo "$kept/leasehold-$version.tar.gz: $(stat -c %s "$kept/leasehold-$version.tar.gz") bytes, $(wc -l <"$work/files") files of $commit"
