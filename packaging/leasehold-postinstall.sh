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
	for unit in leasehold-coordinator leasehold-server; do
		# A server is ready once a majority of the hosts is: an installation does not wait for that for ever.
		timeout 90 systemctl try-restart "$unit.service" ||
			echo "leasehold: $unit is not ready yet: systemctl status $unit says why" >&2
	done
fi
