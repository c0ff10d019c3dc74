#!/bin/sh
# Makes this machine instance {{.Instance}} of a Leasehold shard. Run by root, at boot or by hand; running
# it again does no harm.
set -eu
umask 077

config=/etc/leasehold
state=/var/lib/leasehold
bin=/usr/local/bin/leasehold-agent
host={{quote .Host}}
addresses={{quote .List}}

say() { echo "leasehold: $*" >&2; }

# put FILE MODE: what is on the standard input, as a whole or not at all.
put() {
	cat >"$1.new"
	chmod "$2" "$1.new"
	mv "$1.new" "$1"
}

case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) arch=$(uname -m) ;;
esac
case $arch in{{range .Sums}}
{{.Arch}}) sum={{.SHA256}} ;;{{end}}
*) sum= ;;
esac

# fetch ADDRESS FILE: the agent from one coordinator, which must show a certificate of the shard.
fetch() {
	if command -v curl >/dev/null; then
		curl -fsS --connect-timeout 10 --max-time 180 --cacert "$config/ca.pem" --connect-to "$host:443:$1" -o "$2" "https://$host/agent/linux-$arch"
	elif command -v python3 >/dev/null; then
		python3 - "$1" "$host" "$config/ca.pem" "/agent/linux-$arch" "$2" <<'PYTHON'
import http.client, shutil, socket, ssl, sys
address, host, ca, path, to = sys.argv[1:]
name, _, port = address.rpartition(":")
class Link(http.client.HTTPSConnection):
    def connect(self):
        link = socket.create_connection((name.strip("[]"), int(port)), 30)
        self.sock = ssl.create_default_context(cafile=ca).wrap_socket(link, server_hostname=host)
link = Link(host, timeout=180)
link.request("GET", path)
answer = link.getresponse()
if answer.status != 200:
    sys.exit(f"{address}: {answer.status} {answer.reason}")
with open(to, "wb") as f:
    shutil.copyfileobj(answer, f)
PYTHON
	else
		say "there is neither curl nor python3 to fetch the agent with: use an image that has one, or leasehold-agent"
		return 1
	fi
}

right() { [ -f "$1" ] && [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$sum" ]; }

# agent: provides the program, and prints where it is.
agent() {
	if found=$(command -v leasehold-agent) && [ "$found" != "$bin" ]; then
		echo "$found" # the image's own
		return
	fi
	if [ -z "$sum" ] || [ -z "$addresses" ]; then
		if [ -x "$bin" ]; then
			echo "$bin"
			return
		fi
		say "the image has no leasehold-agent, and the coordinators offer none for $arch: start them with --downloads and --agents"
		exit 1
	fi
	wait=1
	until right "$bin"; do
		for address in $addresses; do
			if ! fetch "$address" "$bin.new"; then
				say "$address gave no agent"
			elif ! right "$bin.new"; then
				say "$address gave an agent with another hash than this script names"
			else
				chmod 755 "$bin.new"
				mv "$bin.new" "$bin"
				break
			fi
		done
		if ! right "$bin"; then
			# Many machines may have been refused together: they come again at different times.
			sleep $((wait + $(od -An -N1 -tu1 /dev/urandom) % (wait + 1)))
			[ $wait -ge 32 ] || wait=$((wait * 2))
		fi
	done
	rm -f "$bin.new"
	echo "$bin"
}

mkdir -p "$config" "$state" "$(dirname "$bin")"
chmod 700 "$config" "$state"
{{- if .Document}}
printf '%s\n' {{quote .Document}} | put "$config/bootstrap.json" 600
{{- end}}
{{- if .WritesCA}}
printf '%s\n' {{quote .CA}} | put "$config/ca.pem" 644
{{- end}}
program=$(agent)
# The agent starts over with another document, since that makes the machine another instance.
document=$(sha256sum "$config/bootstrap.json" | cut -d' ' -f1)
other=
[ "$(cat "$state/started" 2>/dev/null)" = "$document" ] || other=yes

if [ -d /run/systemd/system ]; then
	put /etc/systemd/system/leasehold-agent.service 644 <<UNIT
[Unit]
Description=Leasehold agent
Documentation=https://github.com/leasehold/leasehold
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
# The workload goes on while the agent restarts, and ends with the machine.
Environment=LEASEHOLD_FAREWELL=restart LEASEHOLD_KEEP_WORKLOAD=true
# Settings that no coordinator may give: LEASEHOLD_RELEASE_KEY, say. They overrule those above.
EnvironmentFile=-$config/agent.env
ExecStart=$program --bootstrap $config/bootstrap.json --state-dir $state
Restart=always
RestartSec=1
# The main loop gives a sign of life every minute and a quarter.
WatchdogSec=5min
# The workload outlives its agent, also where the kernel kills a part of it for want of memory. When the
# machine is shut down, it has stop_timeout to end: 10m at most.
KillMode=process
OOMPolicy=continue
TimeoutStopSec=12min
Delegate=yes
TasksMax=infinity
LimitNOFILE=1048576

[Install]
WantedBy=multi-user.target
UNIT
	systemctl daemon-reload
	systemctl enable leasehold-agent.service
	# At boot this runs within a job of systemd itself.
	systemctl ${other:+re}start --no-block leasehold-agent.service
	echo "$document" | put "$state/started" 600
	exit
fi

say "there is no systemd: the agent runs until the machine ends, and starts again only if this does"
# runs FILE: whether the process in the file is one of ours, and not another with its number after a reboot.
runs() { [ -f "$1" ] && tr '\0' '\n' <"/proc/$(cat "$1")/cmdline" 2>/dev/null | grep -qxF "$state"; }
if runs "$state/keeper.pid"; then
	if [ -n "$other" ] && runs "$state/agent.pid"; then
		kill "$(cat "$state/agent.pid")" || : # the keeper starts it again
	fi
	echo "$document" | put "$state/started" 600
	exit
fi
if runs "$state/agent.pid"; then
	kill "$(cat "$state/agent.pid")" || : # its keeper has ended: it must not run beside the next one
fi
setsid sh -c 'echo $$ >"$2/keeper.pid"
	export LEASEHOLD_FAREWELL=restart LEASEHOLD_KEEP_WORKLOAD=true
	if [ -f "$1/agent.env" ]; then
		set -a
		. "$1/agent.env"
		set +a
	fi
	while :; do
		"$0" --bootstrap "$1/bootstrap.json" --state-dir "$2" &
		echo $! >"$2/agent.pid"
		wait $! || :
		sleep 1
	done' "$program" "$config" "$state" >>"$state/agent.log" 2>&1 </dev/null &
echo "$document" | put "$state/started" 600
