#!/bin/sh
# Before a removal, not before an upgrade: Debian says "remove", RPM 0.
set -e
case "${1:-}" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now leasehold-coordinator.service leasehold-server.service
	fi
	;;
esac
