#!/usr/bin/env bash
# Provides what the tests need beyond Go: the race detector needs cgo, cgo needs a C compiler with the
# C library's headers; tests/detect gives each machine a network of its own with ip and nsenter; tests/senses
# freezes a file system; the examples of provider/exec are programs in shell and Python; provider/balancer sends traffic
# through a real HAProxy and nginx; a real Prometheus and dig find instances, and a real Alertmanager takes events, in tests/e2e; provider/lxd, provider/libvirt and
# tests/e2e make machines of a real LXD and a real libvirt; the page is looked at in a real Chromium. Installs them on Debian and Ubuntu as root; elsewhere says what to install. Does nothing,
# quickly, where they are there already.
set -euo pipefail

# Compiles and links, because a compiler without headers or without libc is of no use.
compiles() {
	local cc
	cc=${CC:-$(go env CC)}
	# CC may hold flags: it is split into words on purpose.
	# shellcheck disable=SC2086
	printf '#include <pthread.h>\n#include <stdlib.h>\nint main(void) { return 0; }\n' |
		$cc -x c -pthread -o /dev/null - >/dev/null 2>&1
}

if ! command -v go >/dev/null; then
	echo "error: no go on the PATH" >&2
	echo "next: install Go (the version is in go.mod) from https://go.dev/dl" >&2
	exit 1
fi

networks() { command -v ip >/dev/null && command -v nsenter >/dev/null; }
programs() {
	local p
	for p in jq flock setsid python3 curl; do
		command -v "$p" >/dev/null || return 1
	done
}
disks() { command -v mkfs.ext4 >/dev/null && command -v mount >/dev/null && command -v fsfreeze >/dev/null; }
servers() {
	local p
	for p in haproxy nginx prometheus prometheus-alertmanager dig; do
		PATH=$PATH:/usr/sbin command -v "$p" >/dev/null || return 1
	done
}

browsers() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; }

# Only root can run an LXD or a libvirtd: the tests that need them say so to others, and these scripts install them.
machines() { "$(dirname "$0")/lxd.sh" install && "$(dirname "$0")/libvirt.sh" install; }
[ "$(id -u)" -ne 0 ] || machines

needed=()
compiles || needed+=(gcc libc6-dev)
networks || needed+=(iproute2 util-linux)
disks || needed+=(e2fsprogs mount util-linux)
programs || needed+=(jq util-linux python3 curl ca-certificates)
servers || needed+=(haproxy nginx-light prometheus prometheus-alertmanager bind9-dnsutils)
browsers || needed+=(chromium fonts-dejavu-core)
if [ ${#needed[@]} -eq 0 ]; then
	machines
	exit
fi

if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
	compiles || echo "error: the race detector needs a C compiler and the C library's headers; '${CC:-$(go env CC)}' compiles nothing" >&2
	networks || echo "error: tests/detect needs ip and nsenter on the PATH" >&2
	disks || echo "error: tests/senses needs mkfs.ext4, mount and fsfreeze on the PATH" >&2
	servers || echo "error: provider/balancer and tests/e2e need haproxy, nginx, prometheus, prometheus-alertmanager and dig on the PATH" >&2
	browsers || echo "error: coordinator/web and tests/e2e look at the page in chromium, which must be on the PATH" >&2
	programs || echo "error: the examples of provider/exec need jq, flock, setsid, python3 and curl on the PATH" >&2
	echo "next: install them (Debian: sudo apt-get update && sudo apt-get install ${needed[*]}) and run this again" >&2
	exit 1
fi

echo "test-needs: installing ${needed[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
# These servers' packages start a service, and have it start at boot. Tests have their own.
services=()
if ! servers && [ ! -e /usr/sbin/policy-rc.d ]; then
	trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
	chmod 755 /usr/sbin/policy-rc.d
fi
for p in haproxy nginx prometheus prometheus-alertmanager; do
	PATH=$PATH:/usr/sbin command -v "$p" >/dev/null || services+=("$p")
done
apt-get update -qq
apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "${needed[@]}" >/dev/null
[ ${#services[@]} -eq 0 ] || ! command -v systemctl >/dev/null || systemctl disable "${services[@]}" >/dev/null 2>&1 || true

if ! compiles; then
	echo "error: '${CC:-$(go env CC)}' still compiles nothing after installing gcc" >&2
	echo "next: unset CC, or point it to a C compiler that works" >&2
	exit 1
fi
if ! networks; then
	echo "error: there still is no ip or no nsenter on the PATH after installing them" >&2
	echo "next: add /usr/sbin and /usr/bin to the PATH" >&2
	exit 1
fi
if ! programs; then
	echo "error: there still is no jq, flock, setsid, python3 or curl on the PATH after installing them" >&2
	echo "next: add /usr/bin to the PATH" >&2
	exit 1
fi
if ! servers; then
	echo "error: there still is no haproxy, nginx, prometheus, prometheus-alertmanager or dig after installing them" >&2
	echo "next: apt-get install haproxy nginx-light prometheus prometheus-alertmanager bind9-dnsutils: see what it says" >&2
	exit 1
fi
if ! browsers; then
	echo "error: there still is no chromium after installing it" >&2
	echo "next: apt-get install chromium: see what it says" >&2
	exit 1
fi
if ! disks; then
	echo "error: there still is no mkfs.ext4, mount or fsfreeze on the PATH after installing them" >&2
	echo "next: add /usr/sbin and /usr/bin to the PATH" >&2
	exit 1
fi
machines
