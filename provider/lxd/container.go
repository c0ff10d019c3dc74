package lxd

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// The keys in a container's configuration.
const (
	tags        = "user.leasehold."
	tagShard    = tags + "shard"
	tagInstance = tags + "instance"
	tagGroup    = tags + "group"
	tagZone     = tags + "zone"
	tagTemplate = tags + "template"
	keyPatience = tags + "stop-timeout"
	keyStep     = tags + "step"
	keyWhy      = tags + "why"
	keyStopped  = tags + "stopped"
	keyBoot     = tags + "boot"

	// LXD writes "RUNNING" when a container has started, and "STOPPED" when it sees it end. It
	// starts those that it did not see end when it is started itself, one after the other.
	keyPower = "volatile.last_state.power"
)

// step is the step of the last start that was noted last in the container.
type step string

const (
	stepNew      step = "new"      // it was never started by us
	stepStarting step = "starting" // intent: it may have been started
	stepStarted  step = "started"  // a start has succeeded
	stepFailed   step = "failed"   // a start has failed
)

// container is the part of LXD's api.Instance that matters here.
type container struct {
	Name       string            `json:"name"`
	Status     string            `json:"status"`
	Location   string            `json:"location"`
	LastUsedAt time.Time         `json:"last_used_at"`
	Config     map[string]string `json:"config"`
	Expanded   struct {
		Autostart string `json:"boot.autostart"`
	} `json:"expanded_config"` // with the profiles'

	etag string // of the answer that it was read from
}

func (c *container) isOf(shard, instance string) bool {
	return c.Config[tagShard] == shard && c.Config[tagInstance] == instance && shard != "" && instance != ""
}

// foreign: it has the tags of an instance, and another name than its container. An operator copied
// or renamed one of ours.
func (c *container) foreign() bool { return c.Name != nameOf(c.Config[tagInstance]) }

// start names the last start of the container, "" if there was none.
func (c *container) start() string {
	if c.LastUsedAt.Unix() <= 0 {
		return ""
	}
	return c.LastUsedAt.UTC().Format(time.RFC3339Nano)
}

func (c *container) step() (step, time.Time) {
	what, when, _ := strings.Cut(c.Config[keyStep], " ")
	at, err := time.Parse(time.RFC3339, when)
	if err != nil {
		at = time.Time{}
	}
	return step(what), at
}

func noteOf(s step, now time.Time) string { return string(s) + " " + now.UTC().Format(time.RFC3339) }

// boot is the kernel's boot ID of the last start, "" if it has not been noted.
func (c *container) boot() string {
	of, id, _ := strings.Cut(c.Config[keyBoot], " ")
	if of == "" || of != c.start() {
		return ""
	}
	return id
}

// stopped reports whether a Stop was to end the last start.
func (c *container) stopped() bool {
	return c.Config[keyStopped] != "" && c.Config[keyStopped] == c.start()
}

// LXD's words for a container.
const (
	isRunning  = "Running"
	isStopped  = "Stopped"
	isFrozen   = "Frozen"
	isStarting = "Starting"
)

// up: it runs, if not at this moment.
func (c *container) up() bool {
	return slices.Contains([]string{isRunning, isFrozen, "Ready", "Freezing", "Thawed"}, c.Status)
}

// neverStarted reports whether both our own note and LXD's say that it never started.
func (c *container) neverStarted() bool {
	what, _ := c.step()
	return what == stepNew && c.down() && c.start() == ""
}

func (c *container) down() bool { return c.Status == isStopped }

// restored: it is down because LXD or its host was, and LXD is to start it.
func (c *container) restored() bool {
	return c.down() && c.Config[keyPower] == "RUNNING" && !slices.Contains([]string{"false", "0", "no", "off"},
		strings.ToLower(c.Expanded.Autostart))
}

// machine is what a container is to the contract. A start or restart that was intended more than
// grace ago and has not come about was interrupted.
func (c *container) machine(now time.Time, grace time.Duration) provider.Machine {
	m := provider.Machine{
		Instance: c.Config[tagInstance], Shard: c.Config[tagShard], Group: c.Config[tagGroup], Zone: c.Config[tagZone],
		Ref: c.Name, BootID: c.boot(), Foreign: c.foreign(),
	}
	what, at := c.step()
	underWay := what == stepNew || what == stepStarting
	switch {
	case c.up() && c.stopped():
		m.State = provider.StateStopping
	case c.up():
		m.State = provider.StateRunning
		if c.Status != isRunning {
			m.Why = strings.ToLower(c.Status)
		}
	case c.Status == isStarting:
		m.State = provider.StateStarting
	case c.Status == "Stopping" || c.Status == "Aborting":
		m.State = provider.StateStopping
	case !c.down():
		m.State, m.Why = provider.StateUnknown, "LXD says "+c.Status
	case underWay && now.Sub(at) < grace:
		m.State = provider.StateStarting
	case underWay:
		m.State, m.Why = provider.StateFailed, "its start was interrupted"
	case what == stepFailed:
		m.State, m.Why = provider.StateFailed, c.Config[keyWhy]
	case c.stopped():
		m.State, m.Why = provider.StateStopped, "stopped on request"
	default:
		m.State, m.Why = provider.StateCrashed, "the container has ended, and not by a Stop of Leasehold's"
	}
	return m
}

func path(name string) string { return "/1.0/instances/" + url.PathEscape(name) }

// look reads a container; ok is false if there is none of that name.
func (p *Provider) look(ctx context.Context, name string) (c *container, ok bool, err error) {
	c = &container{}
	c.etag, err = p.client.call(ctx, request{method: http.MethodGet, path: path(name)}, c)
	if notFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, p.kindOf(err, "")
	}
	if c.Name != name { // this says nothing about the container that was asked for
		return nil, false, fmt.Errorf("LXD was asked for container %s and answers with %q", name, c.Name)
	}
	return c, true, nil
}

// find reads the container of an instance of a shard. One with other tags is not there.
func (p *Provider) find(ctx context.Context, shard, instance string) (c *container, ok bool, err error) {
	c, ok, err = p.look(ctx, nameOf(instance))
	if err != nil || !ok || !c.isOf(shard, instance) {
		return nil, false, err
	}
	return c, true, nil
}

// note changes keys of a container's configuration, if it is as it was read, and looks again. The
// error of one that was changed meanwhile is changed's.
func (p *Provider) note(ctx context.Context, c *container, keys map[string]string) (*container, error) {
	err := retry(ctx, func() error {
		_, err := p.client.call(ctx, request{
			method: http.MethodPatch, path: path(c.Name), header: http.Header{"If-Match": {c.etag}},
			body: map[string]any{"config": keys},
		}, nil)
		return err
	})
	if err != nil {
		return c, err
	}
	now, ok, err := p.look(ctx, c.Name)
	if err != nil {
		return c, err
	}
	if !ok || !now.isOf(c.Config[tagShard], c.Config[tagInstance]) {
		return c, errVanished
	}
	return now, nil
}
