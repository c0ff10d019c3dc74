package lxd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// failure is an error that LXD itself reported: in an answer, or as the end of an operation.
type failure struct {
	code int // HTTP's; 0: an operation's, of an LXD that gives operations no code
	text string
	// operation: it is about anything that the operation needed, such as a volume, and not about the
	// path of the request.
	operation bool
}

func (f *failure) Error() string { return f.text }

// unreachable is the error of a request without an answer.
func (c *client) unreachable(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if errors.Is(err, fs.ErrPermission) {
		return &provider.Error{
			Kind: provider.Credentials, Scope: c.where,
			Message: "this user may not open LXD's socket: add it to the group that owns the socket",
		}
	}
	return fmt.Errorf("LXD at %s is out of reach: %w", c.where, err)
}

// meaning is what a refusal of LXD's says about the container or the request.
type meaning int

const (
	nothing   meaning = iota // that is known: the call may succeed later
	busy                     // LXD is at work on the container
	taken                    // the container, or the directory in it, is there already
	running                  // the container is up
	stopped                  // the container is down
	silent                   // the container has written nothing to its console
	absent                   // what the path names does not exist
	changed                  // the container has changed since it was read
	full                     // the pool, the host or the cluster has no room
	exhausted                // the project's limits are reached
	refused                  // this certificate or user may not
	invalid                  // the request is one that LXD never accepts
	noProject
)

// codes are the codes of HTTP that alone say what an answer means, whatever its text.
var codes = map[int]meaning{
	http.StatusUnauthorized:       refused,
	http.StatusConflict:           taken,
	http.StatusPreconditionFailed: changed,
}

// sentences are the answers whose code says too little: LXD answers 500 to what it has no code for,
// one code covers several answers, and the operations of LXD 5.0 have no codes at all. Each is a
// part of the text, in lower case, and the file of LXD's source that has it. What neither code nor
// sentence says is temporary.
var sentences = []struct {
	text   string
	means  meaning
	source string
}{
	{"is busy running", busy, "lxd/instance/operationlock/operationlock.go"},
	{"matching non-reusable operation", busy, "lxd/instance/operationlock/operationlock.go"},
	// LXD missed the end of a container: it has ended, or is to be asked again.
	{"operation timed out after", busy, "lxd/instance/operationlock/operationlock.go (5.0)"},
	{"database is locked", busy, "lxd/db/query/retry.go"},
	// The server of the container's files is just ending.
	{"forkfile.sock", busy, "lxd/instance/drivers/driver_lxc.go"},

	{"already exists", taken, "lxd/db/cluster/instances.mapper.go"},
	{"file exists", taken, "lxd/main_forkfile.go: EEXIST"},
	{"is running", running, "lxd/instance_delete.go"},
	{"already running", running, "lxd/instance/drivers/driver_common.go"},
	{"already stopped", stopped, "lxd/instance/drivers/driver_common.go"},
	{"not running", stopped, "lxd/instance/drivers/driver_lxc.go"},

	{"console.log: no such file or directory", silent, "lxd/instance_console.go: ENOENT"},
	{"instance not found", absent, "lxd/db/cluster/instances.mapper.go"},
	{"project not found", noProject, "lxd/db/cluster/projects.mapper.go"},

	{"reached maximum", exhausted, "lxd/project/limits/permissions.go"},
	{"no space left on device", full, "ENOSPC of any system call"},
	{"disk quota exceeded", full, "EDQUOT of any system call"},
	{"cannot allocate memory", full, "ENOMEM of any system call"},
	{"out of disk space", full, "lxd/archive/archive.go"},
	{"no suitable cluster member", full, "lxd/db/node.go"},

	{"image not provided", invalid, "lxd/instances_post.go"},
	{"requested profile", invalid, "lxd/instance/instance_utils.go"},
	{"requested architecture", invalid, "lxd/instance/instance_utils.go"},
	{"unknown configuration key", invalid, "lxd/instance/instancetype/instance.go"},
	{"invalid config", invalid, "lxd/instance/drivers/driver_lxc.go"},
	{"invalid value", invalid, "shared/validate/validate.go"},
	{"invalid device", invalid, "lxd/instance/drivers/driver_lxc.go"},
	{"failed to start device", invalid, "lxd/instance/drivers/driver_lxc.go"},
	{"storage pool not found", invalid, "lxd/db/storage_pools.go"},
	{"network not found", invalid, "lxd/db/networks.go"},
	{"no root device", invalid, "lxd/instance/instance_utils.go"},
	{"no root disk", invalid, "shared/api/instance.go"},
	{"is forbidden", invalid, "lxd/project/limits/permissions.go"},
	{"are forbidden", invalid, "lxd/project/limits/permissions.go"},
	{`has no "limits.`, invalid, "lxd/project/limits/permissions.go"},
}

// meaning returns what a failure means.
func (f *failure) meaning() meaning {
	if m, is := codes[f.code]; is {
		return m
	}
	text := strings.ToLower(f.text)
	for _, s := range sentences {
		if strings.Contains(text, s.text) {
			return s.means
		}
	}
	switch f.code {
	case http.StatusForbidden:
		return refused
	case http.StatusNotFound:
		return absent
	}
	return nothing
}

// hasMeaning reports whether an error is a refusal of LXD's with this meaning.
func hasMeaning(err error, m meaning) bool {
	var f *failure
	return errors.As(err, &f) && f.meaning() == m
}

// notFound reports whether LXD answered that a path of its API does not exist. That is evidence;
// the text or the code of an operation that failed is not.
func notFound(err error) bool {
	var f *failure
	return errors.As(err, &f) && !f.operation && f.code == http.StatusNotFound && f.meaning() == absent
}

// ofTemplate is the error of a request for a container. LXD answers 400 and 404 to one that names
// what does not exist, or has a wrong form.
func ofTemplate(err error) error {
	var f *failure
	if errors.As(err, &f) && (f.code == http.StatusBadRequest && f.meaning() == nothing || f.meaning() == absent) {
		return &provider.Error{Kind: provider.Invalid, Message: f.text}
	}
	return err
}

// errVanished is the error of a call whose container was deleted meanwhile.
var errVanished = errors.New("the container was deleted meanwhile")

// kindOf gives an error of LXD's its kind (PROV-5).
func (p *Provider) kindOf(err error, zone string) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	as := func(kind provider.Kind, scope string) error {
		return &provider.Error{Kind: kind, Scope: scope, Message: f.text}
	}
	switch f.meaning() {
	case exhausted:
		return as(provider.Quota, "project "+p.project)
	case full:
		return as(provider.Capacity, "zone "+zone)
	case noProject:
		return fmt.Errorf("LXD has no project %s: create it, or correct the provider's project: %w", p.project, err)
	case invalid:
		return as(provider.Invalid, "")
	case refused:
		return as(provider.Credentials, p.client.where)
	default:
		return err
	}
}

// retry repeats what LXD refuses because it is at work on the container.
func retry(ctx context.Context, f func() error) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err := f()
		if !hasMeaning(err, busy) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}
