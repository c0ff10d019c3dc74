package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"
)

// busyError: another host is being added. It passes.
type busyError struct{ what, next string }

func (e *busyError) Error() string { return e.what }

// busyPause is between two tries of a host that waits for another one.
const busyPause = 2 * time.Second

// afterOthers repeats a step of a join while another host is being added. The token bounds how long
// that may take.
func afterOthers(ctx context.Context, log *slog.Logger, step func() error) error {
	said := ""
	for {
		err := step()
		var busy *busyError
		if !errors.As(err, &busy) {
			return err
		}
		if said != busy.what {
			said = busy.what
			log.Info("this host waits for its turn, and joins by itself", "now", busy.what, "next", busy.next)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(busyPause):
		}
	}
}

// elsewhere says to which addresses a name of this host resolves if none of them is its own: others
// then reach another machine, unless an address translation leads here. "": one is, or that is not
// known.
func elsewhere(ctx context.Context, name string) string {
	found, err := net.DefaultResolver.LookupIPAddr(ctx, name)
	if err != nil {
		return ""
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	return foreign(name, found, own)
}

func foreign(name string, found []net.IPAddr, own []net.Addr) string {
	var others []string
	for _, at := range found {
		if at.IP.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
			n, is := a.(*net.IPNet)
			return is && n.IP.Equal(at.IP)
		}) {
			return ""
		}
		others = append(others, at.IP.String())
	}
	switch len(others) {
	case 0:
		return ""
	case 1:
		if others[0] == name {
			return name + " is no address of this host"
		}
		return fmt.Sprintf("%s resolves to %s, which is no address of this host", name, others[0])
	default:
		return fmt.Sprintf("%s resolves to %s, which are no addresses of this host", name, strings.Join(others, " and "))
	}
}
