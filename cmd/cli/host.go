package cli

import (
	"context"
	"log/slog"
	"strings"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/cmd/supervised"
	"github.com/leasehold/leasehold/store"
)

// host returns what the services need from the process and from the flags of all commands.
func (inv *Invocation) host() *services.Host {
	h := &services.Host{
		Stdout: inv.env.Stdout, Stderr: inv.env.Stderr, Terminal: inv.env.StderrTerminal, Colour: inv.aside().Colour,
		Version: inv.env.Version, Shard: inv.flags.Shard, SecretsKey: inv.env.SecretsKey,
		Args:     inv.args,
		Service:  supervised.Open(),
		Adapters: inv.env.Adapters,
		Open:     inv.connect,
		Login:    inv.login,
		Allowed:  inv.allowed,
		Line:     func(e store.JournalEntry) string { return eventLine(inv.screen(), e, inv.env.Now(), false) },
	}
	if ask := inv.env.Members; ask != nil {
		h.Members = func(ctx context.Context, c *Connection) (store.Members, error) {
			if c == nil {
				flags := inv.connection(nil)
				c = &flags
			}
			return ask(ctx, *c)
		}
	}
	return h
}

// connection returns how to connect to etcd.
func (inv *Invocation) connection(log *slog.Logger) Connection {
	name, password, _ := strings.Cut(inv.flags.User, ":")
	return Connection{
		Endpoints: inv.flags.Endpoints, CACert: inv.flags.CACert, Cert: inv.flags.Cert, Key: inv.flags.Key,
		Username: name, Password: password, Logger: log,
	}
}
