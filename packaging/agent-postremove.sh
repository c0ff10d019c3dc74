#!/bin/sh
# After a removal. "purge" of Debian takes the agent's certificate and state as well.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "${1:-}" = purge ]; then
	rm -rf /var/lib/leasehold-agent
	rmdir /etc/leasehold-agent 2>/dev/null || true
fi
