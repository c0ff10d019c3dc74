#!/usr/bin/env bash
# Builds the packages of a release: deb, rpm, archive, SBOM and container image, for amd64 and arm64.
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
# is later than 1.2.3, and v1.2.3-rc1 is earlier. A commit without a release before it is earlier than all.
number() {
	local tag=$1 commits=
	if [[ $tag =~ ^(v.*)-([0-9]+-g.*)$ ]]; then
		tag=${BASH_REMATCH[1]} commits=+${BASH_REMATCH[2]}
	fi
	case "$tag" in
	v[0-9]*.[0-9]*.[0-9]*) echo "$(echo "${tag#v}" | sed 's/-/~/')$commits" | tr - . ;;
	*) echo "0.0.0~$(echo "$1" | tr - .)" ;;
	esac
}

# pack makes a tar of a directory's files in one order, with one time and owner.
pack() { # from, what, owner
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner="$3" --group="$3" --numeric-owner --format=gnu -C "$1" -cf - "$2"
}

# The image has both programs and nothing else; its user is 65532, as in other images without a distribution.
layout=$out/build/oci
oci=application/vnd.oci.image
images=""

# blob keeps a file by its hash, and prints the descriptor of it, without the closing brace.
blob() { # media type, file
	local hash
	hash=$(sha256sum <"$2" | cut -d' ' -f1)
	printf '{"mediaType":"%s","digest":"sha256:%s","size":%s' "$1" "$hash" "$(stat -c %s "$2")"
	mv "$2" "$layout/blobs/sha256/$hash"
}

image() { # architecture
	local root=$out/build/root-$1 layer=$out/build/layer
	mkdir -p "$root/usr/bin" "$root/etc" "$root/tmp" "$root/data/var/lib/leasehold" "$layout/blobs/sha256"
	chmod 1777 "$root/tmp"
	cp "$out/build/$1/leasehold" "$out/build/$1/leasehold-agent" "$root/usr/bin/"
	echo 'leasehold:x:65532:65532::/var/lib/leasehold:/sbin/nologin' >"$root/etc/passwd"
	pack "$root/data" . 65532 >"$layer.data"
	rm -r "$root/data"
	pack "$root" . 0 >"$layer"
	tar --concatenate -f "$layer" "$layer.data"
	local hash created described config
	hash=$(sha256sum <"$layer" | cut -d' ' -f1)
	created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
	gzip -n -9 "$layer"
	described=$(blob $oci.layer.v1.tar+gzip "$layer.gz")
	printf '{"created":"%s","architecture":"%s","os":"linux","config":{"User":"65532:65532","Env":["PATH=/usr/bin"],"Entrypoint":["/usr/bin/leasehold"],"WorkingDir":"/var/lib/leasehold","Volumes":{"/var/lib/leasehold":{}},"Labels":{"org.opencontainers.image.version":"%s","org.opencontainers.image.licenses":"Apache-2.0"}},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"%s"}]}' \
		"$created" "$1" "$version" "$hash" "$created" >"$layer.config"
	config=$(blob $oci.config.v1+json "$layer.config")
	printf '{"schemaVersion":2,"mediaType":"%s","config":%s},"layers":[%s}]}' $oci.manifest.v1+json "$config" "$described" >"$layer.manifest"
	images+=${images:+,}$(blob $oci.manifest.v1+json "$layer.manifest")',"platform":{"architecture":"'$1'","os":"linux"}}'
}

# index completes the layout, in which all architectures are one image.
index() {
	local all=$out/build/index
	printf '{"schemaVersion":2,"mediaType":"%s","manifests":[%s]}' $oci.index.v1+json "$images" >"$all"
	printf '{"schemaVersion":2,"mediaType":"%s","manifests":[%s,"annotations":{"org.opencontainers.image.ref.name":"%s"}}]}' \
		$oci.index.v1+json "$(blob $oci.index.v1+json "$all")" "$version" >"$layout/index.json"
	printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
	pack "$layout" . 0
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
	echo "packages: deb, rpm, archive, SBOM, image for $arch" >&2
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
	pack "$out/build" "$name" 0 | gzip -n -9 >"$out/$name.tar.gz"
	image "$arch"
done
index >"$out/leasehold-$version-oci.tar"

rm -rf "$out/build"
(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "packages: $out" >&2
