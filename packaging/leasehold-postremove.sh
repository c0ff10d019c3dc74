#!/bin/sh
# After a removal. "purge" of Debian takes what a coordinator wrote by itself: never /etc/leasehold/pki, whose keys
# nothing brings back, never a server's data, which is a member of the shard's etcd, and never the backups.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "${1:-}" = purge ]; then
	rm -rf /var/lib/leasehold/coordinator
	rmdir /var/lib/leasehold /etc/leasehold 2>/dev/null || true
	if [ ! -e /var/lib/leasehold ] && getent passwd leasehold >/dev/null; then
		userdel leasehold
	fi
fi
