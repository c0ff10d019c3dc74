#!/usr/bin/env bash
# A real libvirtd for tests, with QEMU by emulation and nothing in it.
#
#   scripts/libvirt.sh install   installs libvirt, QEMU and a kernel for guests where they are missing: on Debian and
#                                Ubuntu, as root
#   scripts/libvirt.sh run [PORT PKI]
#                                starts a libvirtd of its own, prints its directory, runs until its standard input ends,
#                                and takes everything down that it held: guests, daemons, mounts, the directory. With a
#                                port it serves TLS as well: PKI has ca.pem, server.pem and server.key
#
# The directory has run/libvirt-sock and the storage pool's directory, pool. While it has a file named down, a libvirtd
# that ends is not started again. Each run has namespaces of its own for mounts and processes, so that runs beside each
# other do not meet, and nothing outlives the first process in them. The /dev there has no kvm: where that device exists
# and does not work, libvirt asks it for a minute with each machine.
set -euo pipefail
# shellcheck source=scripts/daemon.sh
source "$(dirname "$0")/daemon.sh"

there() {
	local p
	for p in libvirtd virtlogd virsh qemu-img qemu-system-x86_64 unshare; do
		command -v "$p" >/dev/null || return 1
	done
	compgen -G '/boot/vmlinuz-*' >/dev/null
}

install() { install_missing libvirt libvirt-daemon libvirt-clients qemu-system-x86 qemu-utils linux-image-cloud-amd64; }

run() {
	[ "$(id -u)" -eq 0 ] || fail "a libvirtd of its own needs root: it mounts" "run the tests as root"
	install </dev/null
	# Sockets need a short path.
	dir=$(mktemp -d /tmp/lh-lv-XXXXXX)
	trap 'take_down' EXIT
	trap 'exit 1' INT TERM HUP
	unshare --mount --pid --fork --kill-child=KILL --mount-proc "$0" inside "$dir" "$@" </dev/null >"$dir/libvirtd.out" 2>&1 &
	inside=$!
	serve libvirtd "$inside" "$dir" "$dir/libvirtd." virsh -c "qemu:///system?socket=$dir/run/libvirt-sock" list
}

take_down() {
	set +e
	trap '' INT TERM HUP
	# With the first process of the namespace all others end, and its mounts go.
	kill -9 "$inside" 2>/dev/null
	wait "$inside" 2>/dev/null
	for _ in $(seq 100); do
		rm -rf "$dir" 2>/dev/null && break
		sleep 0.1 # a process in it still ends
	done
}

# known adds an entry to a database of names, within these mounts alone, unless it has one of that name.
known() { # database entry
	grep -q "^${2%%:*}:" "/etc/$1" && return
	[ -e "$dir/$1" ] || { cp "/etc/$1" "$dir/$1" && mount --bind "$dir/$1" "/etc/$1"; }
	echo "$2" >>"$dir/$1"
}

# inside is the first process of the namespaces.
inside() { # directory [port pki]
	local place node port=${2:-} pki=${3:-} listen=()
	dir=$1
	mkdir -p "$dir"/{dev,pool}
	chmod 711 "$dir"
	mount -t tmpfs -o mode=755 none "$dir/dev"
	for node in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0'; do
		# shellcheck disable=SC2086 # three words
		set -- $node
		mknod -m 666 "$dir/dev/$1" c "$2" "$3"
	done
	mkdir "$dir/dev/pts" "$dir/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666 none "$dir/dev/pts"
	ln -s pts/ptmx "$dir/dev/ptmx"
	mount --rbind "$dir/dev" /dev
	for place in /run /var/lib /var/cache /var/log /etc; do
		mkdir -p "$place/libvirt" "$dir/${place##*/}"
		mount --bind "$dir/${place##*/}" "$place/libvirt"
	done
	# The user and group of Debian's package libvirt-daemon-system: libvirtd does not start without them.
	known passwd libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin
	known group libvirt-qemu:x:64055:
	known group kvm:x:64056:
	cat >"$dir/etc/libvirtd.conf" <<-END
		auth_unix_rw = "none"
		log_outputs = "2:file:$dir/libvirtd.log"
	END
	cat >"$dir/etc/qemu.conf" <<-END
		user = "root"
		group = "root"
		security_driver = "none"
		namespaces = []
		cgroup_controllers = []
		dynamic_ownership = 0
		remember_owner = 0
	END
	if [ -n "$port" ]; then
		listen=(--listen)
		cat >>"$dir/etc/libvirtd.conf" <<-END
			listen_addr = "127.0.0.1"
			tls_port = "$port"
			ca_file = "$pki/ca.pem"
			cert_file = "$pki/server.pem"
			key_file = "$pki/server.key"
		END
	else
		echo 'listen_tls = 0' >>"$dir/etc/libvirtd.conf"
	fi
	virtlogd -p "$dir/virtlogd.pid" &
	while :; do
		# Guests outlive the libvirtd that started them.
		[ -e "$dir/down" ] || libvirtd "${listen[@]}" -p "$dir/libvirtd.pid" -f "$dir/etc/libvirtd.conf" || true
		sleep 0.1
	done
}

case ${1:-} in
install) install ;;
run) run "${@:2}" ;;
inside) inside "${@:2}" ;;
*)
	sed -n '2,15s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
