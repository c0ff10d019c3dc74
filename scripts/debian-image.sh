#!/usr/bin/env bash
# A plain Debian 12 as an image of LXD, for the tests of the night: systemd, cloud-init, curl, and nothing of Leasehold's.
#
#   scripts/debian-image.sh     makes it where it is missing, on Debian and Ubuntu as root, in some two minutes, and
#                               prints its file
#
# LEASEHOLD_CACHE is where it is kept (default: ~/.cache/leasehold). An image that was cut short is never used.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C DEBIAN_FRONTEND=noninteractive
cache=${LEASEHOLD_CACHE:-$HOME/.cache/leasehold}/debian-image
image=$cache/bookworm-2.tar.gz # another number where what is in it changes
work=$cache/work

fail() { # what, what to do next
	printf 'error: %s\nnext: %s\n' "$1" "$2" >&2
	exit 1
}

make_image() {
	[ "$(id -u)" -eq 0 ] || fail "an image of Debian is made by root: debootstrap makes device files" "run it as root"
	command -v apt-get >/dev/null || fail "this installs Debian's packages, and there is no apt-get" "run it on Debian or Ubuntu"
	if ! command -v debootstrap >/dev/null; then
		apt-get update -qq || true # an old list may do
		apt-get install -y -qq --no-install-recommends debootstrap >/dev/null ||
			fail "debootstrap could not be installed" "apt-get install debootstrap"
	fi
	echo "debian-image.sh: making $image: some two minutes" >&2
	rm -rf "$work" # what an earlier try has left
	mkdir -p "$work"
	debootstrap --variant=minbase \
		--include=systemd,systemd-sysv,dbus,udev,ca-certificates,curl,iproute2,netbase,procps bookworm "$work/rootfs" \
		>"$cache/log" 2>&1 || fail "Debian could not be installed" "read $cache/log"
	printf '#!/bin/sh\nexit 101\n' >"$work/rootfs/usr/sbin/policy-rc.d" # its packages start nothing here
	chmod 755 "$work/rootfs/usr/sbin/policy-rc.d"
	# debootstrap cannot choose between virtual packages, which cloud-init needs.
	chroot "$work/rootfs" sh -euc '
		apt-get install -y -qq --no-install-recommends cloud-init
		systemctl enable systemd-networkd
		systemctl mask systemd-networkd-wait-online # a test without a network would wait for two minutes
		apt-get clean
		rm -rf /usr/sbin/policy-rc.d /var/lib/apt/lists/* /etc/machine-id
		: >/etc/machine-id
	' >>"$cache/log" 2>&1 </dev/null || fail "cloud-init could not be installed" "read $cache/log"
	printf 'architecture: %s\ncreation_date: %s\n' "$(uname -m)" "$(date +%s)" >"$work/metadata.yaml"
	tar -C "$work" --numeric-owner -cf - metadata.yaml rootfs | gzip -1 >"$image.new"
	mv "$image.new" "$image"
	rm -rf "$work"
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
[ -e "$image" ] || make_image
echo "$image"
