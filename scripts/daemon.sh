# What scripts/lxd.sh and scripts/libvirt.sh share: they source it. shellcheck shell=bash
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C

fail() { # what, what to do next
	printf 'error: %s\nnext: %s\n' "$1" "$2" >&2
	exit 1
}

# install_missing installs packages, on Debian and Ubuntu as root, unless the command there succeeds.
install_missing() { # of what, package…
	local name=$1
	shift
	there && return
	command -v apt-get >/dev/null || fail "the tests need $name, and not all of it is on this machine" \
		"install what Debian has as $*, and run this again"
	[ "$(id -u)" -eq 0 ] || fail "the tests need $name, and only root can install it" \
		"sudo apt-get update && sudo apt-get install --no-install-recommends $*"
	echo "${0##*/}: installing $*" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq || true # an old list may do
	# A package may start its daemon where there is systemd. Tests have one of their own.
	apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
		fail "$name could not be installed" "apt-get install $*: see what it says"
	there || fail "$name is not complete after installing it" "apt-get install $*"
}

# serve waits until a daemon answers, prints its directory, and returns when the standard input ends: no process
# holds the other end any more.
serve() { # of what, process, directory, log, command that succeeds once it answers…
	local name=$1 process=$2 directory=$3 log=$4
	shift 4
	for _ in $(seq 300); do
		if "$@" >/dev/null 2>&1 9>&-; then
			echo "$directory"
			cat >/dev/null
			exit 0
		fi
		kill -0 "$process" 2>/dev/null || break
		sleep 0.1
	done
	tail -n 50 "$log"* >&2 2>/dev/null || true
	fail "$name did not come up within 30 s" "read what it says above"
}
