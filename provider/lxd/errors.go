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
	code      int
	text      string
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

// LXD has no codes for its errors but HTTP's, and answers most refusals with 500 or with the text
// of an operation. So the text decides, and what is in no list is temporary. The texts are from LXD
// 5.0 and of what came after it.
var (
	busy = []string{
		"instance is busy", "matching non-reusable operation", "is busy running", "database is locked",
		"a matching reusable operation",
		"forkfile.sock",             // the server of the container's files is just ending
		"operation timed out after", // LXD missed the end of a container: it has ended, or is to be asked again
	}
	taken   = []string{"already exists"}
	running = []string{"instance is running"}
	full    = []string{
		"no space left on device", "disk quota exceeded", "out of space", "out of disk space", "not enough space",
		"cannot allocate memory",
		"couldn't find a cluster member", "no suitable cluster member", "failed getting cluster member",
		"no available cluster members",
	}
	quota   = []string{"reached maximum"}
	refused = []string{
		"certificate is restricted", "not authorized", "user does not have permission", "forbidden by project",
	}
	invalid = []string{
		"image alias not found", "image not provided", "image not found", "couldn't find the image", "invalid value",
		"invalid config", "unknown configuration key", "invalid devices", "invalid device", "requested profile",
		"storage pool not found", "network not found", "failed loading network", "missing parent", "parent device",
		"is forbidden", "are forbidden", "no root device", "no root disk", "invalid option", "requested architecture",
		"cluster group", "cluster member not found", "no such cluster member", "target only allowed",
		"has no \"limits.", "profile not found", "failed to start device", "invalid size", "invalid name",
		"instance type \"", "alias doesn't exist", "not found in the cluster",
	}
	noProject = []string{"failed loading project", "project not found"}
)

func says(err error, texts []string) bool {
	var f *failure
	if !errors.As(err, &f) {
		return false
	}
	text := strings.ToLower(f.text)
	for _, t := range texts {
		if strings.Contains(text, t) {
			return true
		}
	}
	return false
}

// notFound reports whether LXD answered that a path of its API does not exist.
func notFound(err error) bool {
	var f *failure
	return errors.As(err, &f) && !f.operation && f.code == http.StatusNotFound && !says(err, noProject)
}

// errVanished is the error of a call whose container was deleted meanwhile.
var errVanished = errors.New("the container was deleted meanwhile")

// changed reports whether LXD refused a change because the container changed after it was read.
func changed(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.code == http.StatusPreconditionFailed
}

// meaning gives an error of LXD's its kind (PROV-5).
func (p *Provider) meaning(err error, zone string) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	as := func(kind provider.Kind, scope string) error {
		return &provider.Error{Kind: kind, Scope: scope, Message: f.text}
	}
	forbidden := f.code == http.StatusForbidden || f.code == http.StatusUnauthorized
	switch {
	case says(err, quota):
		return as(provider.Quota, "project "+p.project)
	case says(err, full):
		return as(provider.Capacity, "zone "+zone)
	case says(err, noProject):
		return fmt.Errorf("LXD has no project %s: create it, or correct the provider's project: %w", p.project, err)
	case says(err, invalid):
		return as(provider.Invalid, "")
	case forbidden, says(err, refused):
		return as(provider.Credentials, p.client.where)
	}
	return err
}

// retry repeats what LXD refuses because it is at work on the container.
func retry(ctx context.Context, f func() error) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err := f()
		if !says(err, busy) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}
