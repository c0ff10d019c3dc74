#!/usr/bin/env bash
# A real OpenStack for the tests of the night: Keystone, Glance, Placement and Nova of Debian 12 (Zed), with Nova's
# fake driver in place of a hypervisor and a stub in place of Neutron. It is installed into a directory of its own, some
# 2 GB, which is kept; nothing of it reaches the host.
#
#   scripts/openstack.sh install   installs it where it is missing: on Debian and Ubuntu, as root. Some ten minutes
#   scripts/openstack.sh run       starts it, prints the directory with its sockets (keystone.sock, glance.sock, nova.sock,
#                                  neutron.sock) and runs until its standard input ends. Its catalog has them as ports of the
#                                  host cloud.example
#
# LEASEHOLD_CACHE is where it is kept (default: ~/.cache/leasehold). It runs in namespaces of its own for processes, mounts
# and network: all of it ends with the script, whatever ends that. Only one runs at a time.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
cache=${LEASEHOLD_CACHE:-$HOME/.cache/leasehold}/openstack-zed
root=$cache/root
complete=$root/.complete-2 # another number where what is set up changes

fail() { # what, what to do next
	printf 'error: %s\nnext: %s\n' "$1" "$2" >&2
	exit 1
}

needs_root() {
	[ "$(id -u)" -eq 0 ] || fail "a real OpenStack needs root: it lives in a directory and namespaces of its own" "run it as root"
}

# alone waits until no other script uses the directory.
alone() {
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	if ! flock -n 9; then
		echo "openstack.sh: another test has the OpenStack: waiting for its end" >&2
		flock 9
	fi
}

# packages makes the directory, with all packages in it.
packages() {
	export DEBIAN_FRONTEND=noninteractive
	if ! command -v debootstrap >/dev/null; then
		apt-get update -qq || true # an old list may do
		apt-get install -y -qq --no-install-recommends debootstrap >/dev/null ||
			fail "debootstrap could not be installed" "apt-get install debootstrap"
	fi
	rm -rf "$root" # what an earlier try has left
	mkdir -p "$root"
	echo "openstack.sh: installing into $root: some ten minutes" >&2
	debootstrap --variant=minbase bookworm "$root" >"$cache/install.log" 2>&1 ||
		fail "the base system could not be installed" "read $cache/install.log"
	# Security updates need the archives that this host has, if it is the same release.
	! grep -qs bookworm-security /etc/apt/sources.list.d/debian.sources ||
		cp /etc/apt/sources.list.d/debian.sources "$root/etc/apt/sources.list.d/"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no daemon is started by its package
	chmod 755 "$root/usr/sbin/policy-rc.d"
	# The packages with daemons ask and configure much. Of them only files are taken.
	chroot "$root" sh -euc '
		apt-get -qq update
		apt-get install -y -qq --no-install-recommends mariadb-server rabbitmq-server python3-keystone python3-glance \
			python3-placement python3-nova uwsgi-core uwsgi-plugin-python3 python3-pymysql python3-memcache iproute2 procps
		cd /tmp
		apt-get -qq download nova-common glance-common
		for package in nova-common glance-common; do dpkg-deb -x ${package}_*.deb /; done
		apt-get clean
	' >>"$cache/install.log" 2>&1 || fail "OpenStack could not be installed" "read $cache/install.log"
	touch "$root/.installed"
}

install() {
	needs_root
	[ ! -e "$complete" ] || return 0
	command -v apt-get >/dev/null || fail "this installs Debian's packages, and there is no apt-get" "run it on Debian or Ubuntu"
	[ -e "$root/.installed" ] || packages
	inside setup >>"$cache/install.log" 2>&1 </dev/null || fail "OpenStack could not be set up" "read $cache/install.log"
	touch "$complete"
}

# inside runs scripts/openstack-inside.sh in the directory, in namespaces of its own.
inside() {
	cp "$here/openstack-inside.sh" "$root/inside.sh"
	# shellcheck disable=SC2016 # expanded inside
	unshare --mount --pid --net --uts --ipc --fork --kill-child --propagation private sh -euc '
		mount -t proc proc "$1/proc"
		mount --rbind /dev "$1/dev"
		hostname localhost
		exec chroot "$1" bash /inside.sh "$2"
	' sh "$root" "$1"
}

run() {
	needs_root
	alone
	install </dev/null
	# Paths of sockets are short.
	short=$(mktemp -d /tmp/lh-os-XXXXXX)
	ln -s "$root/run/leasehold" "$short/run"
	trap 'rm -rf "$short"' EXIT
	trap 'exit 1' INT TERM HUP
	LEASEHOLD_SHORT=$short/run inside run 2>"$cache/run.log" ||
		fail "OpenStack ended: $(tail -n 3 "$cache/run.log")" "read $cache/run.log, and the logs in $root/var/log/leasehold"
}

case ${1:-} in
install)
	needs_root
	alone
	install
	;;
run) run ;;
*)
	sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
