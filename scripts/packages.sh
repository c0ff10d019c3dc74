#!/usr/bin/env bash
# Builds the packages of a release: deb, rpm, archive and SBOM, for amd64 and arm64.
#
#   scripts/packages.sh [DIR]      into DIR (default: dist), which is emptied first
#
# VERSION is the version of the programs (default: what git describe says); SOURCE_DATE_EPOCH is the time of
# everything in the packages (default: that of the commit), ARCHITECTURES what to build for. The
# same source, version, time and Go give the same bytes.
set -euo pipefail
umask 022
out=$(realpath -m "${1:-dist}")
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC CGO_ENABLED=0
version=${VERSION:-$(git describe --tags --always --dirty)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
architectures=${ARCHITECTURES:-amd64 arm64}
tool() { go tool -modfile=scripts/tools/package/go.mod "$@"; }

# number is the version as packages have it, in which no hyphen may be: v1.2.3-4-gabc, four commits after a release,
# is later than 1.2.3. A commit without a release before it is earlier than all.
number() {
	local rest
	case "$1" in
	v[0-9]*.[0-9]*.[0-9]*-[0-9]*-g*)
		rest=${1#v}
		echo "${rest%%-*}+${rest#*-}" | tr - .
		;;
	v[0-9]*.[0-9]*.[0-9]*) echo "${1#v}" | sed 's/-/~/' | tr - . ;;
	*) echo "0.0.0~$(echo "$1" | tr - .)" ;;
	esac
}

# reproducible packs a directory's files in one order, with one time and owner.
reproducible() {
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$1" -cf - "$2" |
		gzip -n -9
}

rm -rf "$out"
shared=$out/build/shared
mkdir -p "$shared"
for arch in $architectures; do
	echo "packages: programs for $arch" >&2
	for program in leasehold leasehold-agent; do
		GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" \
			-o "$out/build/$arch/$program" "./cmd/$program"
	done
done

own=$out/build/$(go env GOHOSTARCH)
for program in leasehold leasehold-agent; do
	"$own/$program" man | gzip -n -9 >"$shared/$program.1.gz"
done
for shell in bash zsh fish; do # the scripts name the program that printed them
	"$own/leasehold" completion "$shell" | sed "s|$own/leasehold|/usr/bin/leasehold|" >"$shared/leasehold.$shell"
done

PACKAGE_VERSION=$(number "$version")
export PACKAGE_VERSION PACKAGE_SHARED=$shared PACKAGE_ARCH PACKAGE_STAGE
for arch in $architectures; do
	echo "packages: deb, rpm, archive, SBOM for $arch" >&2
	PACKAGE_ARCH=$arch PACKAGE_STAGE=$out/build/$arch
	for package in leasehold leasehold-agent; do
		for kind in deb rpm; do
			tool nfpm package --config "packaging/$package.yaml" --packager "$kind" --target "$out/" >&2
		done
		tool cyclonedx-gomod bin -json -noserial -notimestamp -std -version "$version" \
			-output "$out/$package-$version-linux-$arch.cdx.json" "$PACKAGE_STAGE/$package" >&2
	done
	name=leasehold-$version-linux-$arch
	mkdir -p "$out/build/$name/systemd"
	cp "$PACKAGE_STAGE"/leasehold "$PACKAGE_STAGE"/leasehold-agent LICENSE README.md CHANGELOG.md "$shared"/* "$out/build/$name/"
	cp packaging/*.service packaging/*.env "$out/build/$name/systemd/"
	reproducible "$out/build" "$name" >"$out/$name.tar.gz"
done

rm -rf "$out/build"
(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "packages: $out" >&2
