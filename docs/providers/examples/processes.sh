#!/usr/bin/env bash
# A provider for Leasehold in a shell script: each machine is an agent and what it started, in a
# session of its own on this host. It needs bash, jq, flock and setsid, and shows every part
# of the protocol in docs/providers/exec.md. Keep machines in a directory that only its user reads.
#
#   config: {dir: /var/lib/acme, agent: [/usr/bin/leasehold-agent], zones: [local]}
set -euo pipefail
umask 077

request=$(cat)
result() { printf '{"result": %s}\n' "$1"; }
fail() { # code message
	jq -nc --arg c "$1" --arg m "$2" '{error: {code: $c, message: $m}}'
	exit 0
}

# @sh quotes each value for the shell.
eval "$(jq -r '@sh "method=\(.method) shard=\(.shard // "") instance=\(.instance // "") dir=\(.config.dir // "")",
	@sh "timeout=\(.params.timeout // 0 | ceil) named=\(.params.boot // "") agent=(\(.config.agent // []))"' <<<"$request")"

if [[ $method == describe ]]; then
	result "$(jq -c '{
		api: 1, name: "processes.sh 1", zones: (.config.zones // ["local"]), consistency: 0, call_timeout: 60,
		capabilities: {boots: true, crashes: true, remembers: true, console: true},
		settings: {type: "object", additionalProperties: false, properties:
			{nice: {type: "integer", minimum: 0, maximum: 19, description: "priority of the machine"}}}
	}' <<<"$request")"
	exit
fi
[[ -n $dir ]] || fail credentials 'config.dir is not set: name the directory for machines'
mkdir -p "$dir/machines" "$dir/locks" "$dir/deleted"
home=$dir/machines/$instance

# The instance's ID becomes a file name.
[[ -z $instance || $instance =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}$ ]] || fail invalid "instance $instance: not a plain name"

# Calls for one instance take turns, whichever coordinator makes them.
lock() {
	exec 9>"$dir/locks/$instance"
	flock 9
}

# alive: the machine's first process runs, and is the one that was started.
alive() {
	local pid start
	[[ -f $1/process ]] && read -r pid start <"$1/process" && [[ $(started "$pid") == "$start" ]]
}
started() { { awk '{sub(/.*\) /, ""); if ($1 != "Z") print $20}' "/proc/$1/stat"; } 2>/dev/null || true; }

show() { # the machine in a directory, as JSON
	local state=crashed why='its first process has ended'
	if alive "$1"; then
		state=running why=''
	elif [[ -f $1/stopped ]]; then
		state=stopped why=''
	elif [[ ! -f $1/process ]]; then
		state=starting why=''
	fi
	jq -c --arg ref "$1" --arg state "$state" --arg why "$why" --rawfile boot "$1/boot" \
		'. + {ref: $ref, state: $state, why: $why, boot: ($boot | rtrimstr("\n"))}' "$1/machine.json"
}

# begun: its last boot has started, or was not to. A call that died may have left it otherwise.
begun() { [[ -f $home/process || -f $home/stopped ]]; }

boot() { # starts the machine in a directory with a new boot
	rm -f "$1/stopped" "$1/process"
	cat /proc/sys/kernel/random/uuid >"$1/boot"
	# setsid: what is left of this program's own process group is killed when it ends. The new process holds the lock until
	# it is noted, also if this program dies meanwhile.
	LEASEHOLD_BOOTSTRAP=$1/bootstrap.json LEASEHOLD_BOOT_ID=$(<"$1/boot") LEASEHOLD_STATE_DIR=$1/state LEASEHOLD_WORK_DIR=$1 \
		LEASEHOLD_MACHINE=$shard/$instance \
		setsid -f bash -c 'echo "$$ $(awk "{sub(/.*\) /, \"\"); print \$20}" /proc/$$/stat)" >"$0/process.new"
			mv "$0/process.new" "$0/process"; exec 9>&-; exec nice -n "$1" "${@:2}"' "$1" "$(<"$1/nice")" "${agent[@]}" \
		>>"$1/console" 2>&1 </dev/null
	until [[ -f $1/process ]]; do sleep 0.01; done
}

# residents: all that the machine started, wherever it went: its environment names the machine.
residents() {
	grep -lszxF "LEASEHOLD_MACHINE=$shard/$instance" /proc/[0-9]*/environ | cut -d/ -f3 || true
}

halt() { # directory, seconds: ends the machine in order, then the hard way
	local pid _ left
	if alive "$1"; then
		read -r pid _ <"$1/process"
		kill -TERM "$pid" 2>/dev/null || true
		for ((i = 0; i < $2 * 20; i++)); do
			alive "$1" || break
			sleep 0.05
		done
	fi
	while left=$(residents) && [[ -n $left ]]; do
		kill -KILL $left 2>/dev/null || true # shellcheck disable=SC2086: they are numbers
		sleep 0.01
	done
}

# mine: there is such a machine, and it is of the shard that asks.
mine() { [[ -f $home/shard && $(<"$home/shard") == "$shard" ]]; }

case $method in
create)
	lock
	[[ ! -e $dir/deleted/$instance ]] || fail deleted 'it was deleted before'
	if [[ ! -d $home ]]; then
		new=$dir/machines/.new.$instance
		rm -rf "$new" # of a call that died
		mkdir "$new"
		jq -c '{instance, shard, group: .params.group, zone: .params.zone, address: ""}' <<<"$request" >"$new/machine.json"
		jq -r '.params.settings.nice // 0' <<<"$request" >"$new/nice"
		jq -r .params.bootstrap <<<"$request" >"$new/bootstrap.json"
		jq -r .params.user_data <<<"$request" >"$new/user-data" # for a machine without an agent
		echo "$shard" >"$new/shard"
		: >"$new/boot"
		mv "$new" "$home"
	fi
	mine || fail invalid "another shard has a machine $instance"
	begun || boot "$home"
	result "$(show "$home")"
	;;
stop)
	lock
	if mine; then
		touch "$home/stopped" # noted before, so that its end is no crash
		halt "$home" "$timeout"
	fi
	result '{}'
	;;
delete)
	lock
	if mine; then
		touch "$home/stopped"
		halt "$home" 0
		touch "$dir/deleted/$instance"
		mv "$home" "$dir/machines/.gone.$instance" # whole, or not: list shows no half of it
	elif [[ ! -e $home ]]; then
		touch "$dir/deleted/$instance"
	fi
	rm -rf "$dir/machines/.gone.$instance"
	result '{}'
	;;
restart)
	lock
	mine || fail not_found 'no such machine'
	if [[ -z $named || $named == "$(<"$home/boot")" ]] || ! begun; then
		halt "$home" 20
		boot "$home"
	fi
	result '{}'
	;;
list)
	for one in "$dir"/machines/*/; do
		[[ -f $one/machine.json ]] || continue # deleted meanwhile
		show "${one%/}" 2>/dev/null || [[ ! -d $one ]]
	done | jq -sc --arg shard "$shard" '{result: {machines: map(select(.shard == $shard)), complete: true}}'
	;;
console)
	mine || fail not_found 'no such machine'
	tail -c 65536 "$home/console" | base64 -w0 | jq -Rc '{result: {tail: .}}'
	;;
*) fail temporary "unknown method $method" ;;
esac
