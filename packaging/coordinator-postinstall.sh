#!/bin/sh
# After an installation, an upgrade or a downgrade: Debian says "configure", RPM 1 or 2.
set -e
getent group leasehold >/dev/null || groupadd --system leasehold
getent passwd leasehold >/dev/null || useradd --system --gid leasehold --home-dir /var/lib/leasehold \
	--no-create-home --shell /usr/sbin/nologin leasehold
install -d -o leasehold -g leasehold -m 0750 /var/lib/leasehold
chown root:leasehold /etc/leasehold
chmod 0750 /etc/leasehold
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart leasehold-coordinator.service
fi
