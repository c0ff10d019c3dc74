package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/leasehold/leasehold/provider"
)

// Stop has Nova shut the guest down. How long that may take before Nova ends it is Nova's setting
// (shutdown_timeout, or the image's os_shutdown_timeout): its API takes no time.
func (p *Provider) Stop(ctx context.Context, shard, instance string, _ time.Duration) error {
	return p.each(ctx, "stop", shard, instance, p.stop)
}

// Delete removes all servers of the instance.
func (p *Provider) Delete(ctx context.Context, shard, instance string) error {
	return p.each(ctx, "delete", shard, instance, p.remove)
}

// each does something to every server of an instance.
func (p *Provider) each(ctx context.Context, what, shard, instance string,
	do func(context.Context, *server) error,
) error {
	err := p.locks.With(ctx, instance, func() error {
		found, err := p.find(ctx, shard, instance)
		errs := []error{err}
		for _, s := range found {
			errs = append(errs, do(ctx, s))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("%s machine %s: %w", what, instance, p.meaning(ctx, err))
	}
	return nil
}

// RemoveCopy removes one server of an instance, if it is the one that the call made.
func (p *Provider) RemoveCopy(ctx context.Context, shard, instance, ref, call string) error {
	err := p.locks.With(ctx, instance, func() error {
		s, err := p.get(ctx, ref)
		if err != nil || s == nil {
			return err
		}
		if s.hidden() {
			return fmt.Errorf("the part of Nova that holds server %s is down", ref)
		}
		if !s.isOf(shard, instance) || call == "" || s.Metadata[tagCall] != call {
			return nil
		}
		return p.remove(ctx, s)
	})
	if err != nil {
		return fmt.Errorf("remove server %s of %s: %w", ref, instance, p.meaning(ctx, err))
	}
	return nil
}

// note keeps a word with the server.
func (p *Provider) note(ctx context.Context, s *server, key, value string) error {
	if s.Metadata[key] == value {
		return nil
	}
	err := p.patient(ctx, func(c *session) error {
		_, err := servers.UpdateMetadata(ctx, c.compute, s.ID, servers.MetadataOpts{key: value}).Extract()
		return err
	})
	if err == nil {
		s.Metadata[key] = value
	}
	return err
}

// stop notes the intent first, so that the end of the guest is not taken for a crash. It is noted
// only of a server that runs: one that crashed stays crashed.
func (p *Provider) stop(ctx context.Context, s *server) error {
	_, err := p.await(ctx, s.ID, func(now *server) (bool, error) {
		if now == nil {
			return true, nil
		}
		if now.hidden() {
			return false, fmt.Errorf("the part of Nova that holds server %s is down", s.ID)
		}
		state, _ := now.state()
		switch {
		case state.Down() || now.Task == "deleting":
			return true, nil
		case now.Status != statusActive && now.Status != statusError && now.Task == "" && state != provider.StateStarting:
			return false, fmt.Errorf("server %s is %s: Nova stops only one that is ACTIVE: resume it, or delete the machine",
				s.ID, now.Status)
		case now.Task != "" || state == provider.StateStarting:
			return false, nil // Nova is at work on it
		}
		if err := p.note(ctx, now, tagStop, stopAsked); err != nil {
			return false, notFoundIsNil(err)
		}
		_, err := p.act(ctx, func(c *session) error { return servers.Stop(ctx, c.compute, s.ID).ExtractErr() })
		return false, err
	})
	return err
}

func notFoundIsNil(err error) error {
	if gone(err) {
		return nil
	}
	return err
}

// Restart starts a server that is off, and reboots one that is on without shutting it down. Nova
// has no IDs of boots, so a call that comes late or twice ends the boot that is there then.
func (p *Provider) Restart(ctx context.Context, shard, instance, _ string) error {
	err := p.locks.With(ctx, instance, func() error {
		found, err := p.find(ctx, shard, instance)
		if err != nil {
			return err
		}
		if len(found) > 1 {
			return fmt.Errorf("it has %d servers (%s), and it is unknown which one to restart: remove the others first",
				len(found), ids(found))
		}
		if len(found) == 0 {
			return provider.ErrNotFound
		}
		return p.restart(ctx, found[0])
	})
	if err != nil {
		return fmt.Errorf("restart machine %s: %w", instance, p.meaning(ctx, err))
	}
	return nil
}

func ids(all []*server) string {
	var out []string
	for _, s := range all {
		out = append(out, s.ID)
	}
	return strings.Join(out, ", ")
}

func (p *Provider) restart(ctx context.Context, s *server) error {
	if s.Metadata[tagStop] == stopAsked {
		if err := p.note(ctx, s, tagStop, stopNone); gone(err) {
			return provider.ErrNotFound
		} else if err != nil {
			return err
		}
	}
	asked := false
	_, err := p.await(ctx, s.ID, func(now *server) (bool, error) {
		switch {
		case now == nil:
			return false, provider.ErrNotFound
		case now.hidden():
			return false, fmt.Errorf("the part of Nova that holds server %s is down", s.ID)
		case now.Task != "" || now.Status == statusBuild:
			return false, nil // Nova is at work on it
		case asked && now.Status == statusActive:
			return true, nil
		case asked && now.Status == statusError:
			return false, fmt.Errorf("server %s did not boot: %s", s.ID, now.Fault.Message)
		}
		begun, err := p.boot(ctx, now)
		asked = asked || begun
		return false, err
	})
	return err
}

// boot asks for another boot. Nova refuses with a conflict while it is at work on the server; then
// nothing has begun.
func (p *Provider) boot(ctx context.Context, s *server) (begun bool, err error) {
	err = p.patient(ctx, func(c *session) error {
		if s.Status == statusShutoff {
			return servers.Start(ctx, c.compute, s.ID).ExtractErr()
		}
		return servers.Reboot(ctx, c.compute, s.ID, servers.RebootOpts{Type: servers.HardReboot}).ExtractErr()
	})
	switch {
	case err == nil:
		return true, nil
	case isStatus(err, http.StatusConflict):
		return false, nil
	case gone(err):
		return false, provider.ErrNotFound
	}
	return false, err
}

// Console is the end of what Nova has of the server's console. The hypervisor decides how much that
// is, and whether it outlives a boot.
func (p *Provider) Console(ctx context.Context, shard, instance string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found, err := p.find(ctx, shard, instance)
	if err == nil && len(found) == 0 {
		err = provider.ErrNotFound
	}
	var text string
	if err == nil {
		err = p.patient(ctx, func(c *session) error {
			text, err = servers.ShowConsoleOutput(ctx, c.compute, found[0].ID, servers.ShowConsoleOutputOpts{}).Extract()
			if gone(err) {
				err = provider.ErrNotFound
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("console of machine %s: %w", instance, p.meaning(ctx, err))
	}
	return []byte(text[max(0, len(text)-provider.ConsoleTail):]), nil
}
