#!/usr/bin/env bash
# A real LXD for tests, with nothing in it.
#
#   scripts/lxd.sh install   installs LXD where it is missing: on Debian and Ubuntu, as root
#   scripts/lxd.sh run       starts an LXD of its own, prints its directory, runs until its standard input ends, and
#                            removes everything that it created: containers, networks, mounts, the directory
#
# The caller holds the other end of its standard input, so nothing is left even if the caller is killed. It runs in a
# session of its own and does not get the Ctrl-C that ends the tests. Only one runs at a time.
set -euo pipefail
# shellcheck source=scripts/daemon.sh
source "$(dirname "$0")/daemon.sh"

there() { command -v lxd >/dev/null && command -v lxc >/dev/null && command -v dnsmasq >/dev/null && command -v ip >/dev/null; }

install() { install_missing LXD lxd lxd-client dnsmasq-base iproute2; }

run() {
	[ "$(id -u)" -eq 0 ] || fail "a real LXD needs root: it makes containers, mounts and bridges" "run the tests as root"
	install </dev/null
	exec 9>/tmp/.leasehold-lxd.lock
	if ! flock -n 9; then
		echo "lxd.sh: another test has an LXD: waiting for its end" >&2
		flock 9
	fi
	# LXD's unix sockets need a short path.
	dir=$(mktemp -d /tmp/lh-lxd-XXXXXX)
	trap 'take_down' EXIT
	trap 'exit 1' INT TERM HUP
	export LXD_DIR=$dir LXD_CONF=$dir/client
	chmod 711 "$dir"
	lxd --group root --logfile "$dir/lxd.log" </dev/null >"$dir/lxd.out" 2>&1 9>&- &
	daemon=$!
	serve LXD "$daemon" "$dir" "$dir/lxd." lxc query /1.0
}

# made lists the containers that have a directory.
made() { find "$dir"/storage-pools/*/containers -mindepth 1 -maxdepth 1 -printf '%f\n'; }

# take_down stops the LXD and removes everything that it created, by force if necessary.
take_down() {
	set +e
	trap '' INT TERM HUP
	exec >/dev/null 2>&1
	local names bridges project pid name containers
	bridges=$(ls "$dir/networks") # there even if the daemon is not
	containers=$(made)
	# What was being made while the others went goes in the next round.
	for _ in 1 2 3; do
		for project in $(timeout 10 lxc project list -f csv | cut -d, -f1 | sed 's/ (current)//'); do
			names=$(timeout 10 lxc list --project "$project" -f csv -c n)
			# shellcheck disable=SC2086 # names of containers have no spaces
			[ -z "$names" ] || timeout 60 lxc delete -f --project "$project" $names
		done
	done
	containers="$containers $(made)"
	for bridge in $bridges; do timeout 10 lxc network delete "$bridge"; done
	kill "$daemon"
	for _ in $(seq 100); do
		kill -0 "$daemon" || break
		sleep 0.1
	done
	# Everything of ours has the directory in its command line: the daemon, its dnsmasq, containers' monitors.
	for pid in $(grep -lF "$dir" /proc/[0-9]*/cmdline | cut -d/ -f3); do
		[ "$pid" = $$ ] || [ "$pid" = "$BASHPID" ] || kill -9 "$pid"
	done
	# Processes of a container whose monitor was killed are found by its cgroups, and by the root that they have.
	for name in $containers; do
		for pid in $(cat /sys/fs/cgroup/*/lxc.payload."$name"/cgroup.procs /sys/fs/cgroup/lxc.payload."$name"/cgroup.procs); do
			! grep -qF "$dir" "/proc/$pid/mountinfo" || kill -9 "$pid"
		done
	done
	for name in $containers; do
		find /sys/fs/cgroup -maxdepth 3 -depth -type d \( -path "*/lxc.payload.$name*" -o -path "*/lxc.monitor.$name*" \) -exec rmdir {} \;
	done
	for bridge in $bridges; do ip link delete "$bridge"; done
	awk -v d="$dir/" 'index($2, d) == 1 {print $2}' /proc/mounts | tac | while read -r mount; do umount -l "$mount"; done
	rm -rf "$dir"
}

case ${1:-} in
install) install ;;
run) run ;;
*)
	sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
