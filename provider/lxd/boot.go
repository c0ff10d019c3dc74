package lxd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// setState asks LXD to start or stop a container. Without a timeout a stop is forced: the processes
// are killed.
func (p *Provider) setState(ctx context.Context, name, action string, timeout time.Duration) error {
	body := map[string]any{"action": action, "timeout": -1, "force": timeout <= 0}
	if timeout > 0 {
		body["timeout"] = int(math.Ceil(timeout.Seconds()))
	}
	return retry(ctx, func() error {
		_, err := p.client.call(ctx, request{method: http.MethodPut, path: path(name) + "/state", body: body}, nil)
		return err
	})
}

const unlimited = 0 // LXD has no time limit on a start

// startUp starts a container whose start was noted as intended, and notes the outcome.
func (p *Provider) startUp(ctx context.Context, c *container) (*container, error) {
	err := p.setState(ctx, c.Name, "start", unlimited)
	if err != nil && !hasMeaning(err, running) {
		var f *failure
		if errors.As(err, &f) && ctx.Err() == nil {
			p.noteFailed(ctx, c, f.text)
		}
		return c, fmt.Errorf("start: %w", err)
	}
	now, err := p.again(ctx, c)
	if err != nil {
		return now, err
	}
	return p.noteStarted(ctx, now)
}

// noteFailed keeps the reason for List. Without it the start counts as interrupted after a while.
// LXD itself changes the container while its start fails, so the note may have to be created again.
func (p *Provider) noteFailed(ctx context.Context, c *container, why string) {
	var err error
	for again := true; again; again = hasMeaning(err, changed) && ctx.Err() == nil {
		var now *container
		if now, err = p.again(ctx, c); err == nil && !now.up() {
			_, err = p.note(ctx, now, map[string]string{keyStep: noteOf(stepFailed, time.Now()), keyWhy: why})
		}
	}
	if err != nil {
		p.log.Warn("note that a container did not start", "instance", c.Config[tagInstance], "error", err)
	}
}

// noteStarted notes that a start has succeeded, and which boot it was. LXD itself changes the
// container while it starts, so the note may have to be created again.
func (p *Provider) noteStarted(ctx context.Context, c *container) (*container, error) {
	for {
		keys := map[string]string{keyStep: noteOf(stepStarted, time.Now()), keyWhy: ""}
		if id := p.readBoot(ctx, c); id != "" {
			keys[keyBoot] = c.start() + " " + id
		}
		now, err := p.note(ctx, c, keys)
		if err == nil {
			return now, nil
		}
		if !hasMeaning(err, changed) {
			return c, err
		}
		if c, err = p.again(ctx, c); err != nil {
			return c, err
		}
	}
}

const bootTimeout = 5 * time.Second

var bootForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// readBoot asks the container for its kernel's boot ID: LXC gives each start one of its own. It
// returns "" if the ID cannot be read, or if it may belong to another start than the one that c
// shows.
func (p *Provider) readBoot(ctx context.Context, c *container) string {
	if c.Status != isRunning || c.start() == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	_, data, err := p.client.send(ctx, request{
		method: http.MethodGet, path: path(c.Name) + "/files",
		query: url.Values{"path": {"/proc/sys/kernel/random/boot_id"}},
	})
	id := strings.TrimSpace(string(data))
	if err != nil || !bootForm.MatchString(id) {
		p.log.Debug("a container's boot is unknown", "instance", c.Config[tagInstance], "error", err)
		return ""
	}
	var now container
	if _, err := p.client.call(ctx, request{method: http.MethodGet, path: path(c.Name)}, &now); err != nil ||
		now.start() != c.start() || now.Status != isRunning {
		return ""
	}
	return id
}
