#!/usr/bin/env bash
# etcdctl for the etcd of a leasehold dev that runs on this machine, as its root.
set -euo pipefail
env="${LEASEHOLD_DATA_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/leasehold/dev}/etcdctl.env"
if [ -z "${ETCDCTL_ENDPOINTS:-}" ] && [ -r "$env" ]; then
  # shellcheck source=/dev/null
  . "$env"
fi
exec go tool -modfile="$(dirname "$0")/tools/etcdctl/go.mod" etcdctl "$@"
