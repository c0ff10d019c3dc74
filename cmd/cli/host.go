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
func (s *Session) host() *services.Host {
	h := &services.Host{
		Stdout: s.env.Stdout, Stderr: s.env.Stderr, Terminal: s.env.StderrTerminal, Colour: s.aside().Colour,
		Version: s.env.Version, Shard: s.flags.Shard, SecretsKey: s.env.SecretsKey,
		Args:     s.args,
		Service:  supervised.Open(),
		Adapters: s.env.Adapters,
		Open:     s.connect,
		Login:    s.login,
		Allowed:  s.allowed,
		Line:     func(e store.JournalEntry) string { return eventLine(s.screen(), e, s.env.Now(), false) },
	}
	if ask := s.env.Members; ask != nil {
		h.Members = func(ctx context.Context, c *Connection) (store.Members, error) {
			if c == nil {
				flags := s.connection(nil)
				c = &flags
			}
			return ask(ctx, *c)
		}
	}
	return h
}

// connection returns how to connect to etcd.
func (s *Session) connection(log *slog.Logger) Connection {
	name, password, _ := strings.Cut(s.flags.User, ":")
	return Connection{
		Endpoints: s.flags.Endpoints, CACert: s.flags.CACert, Cert: s.flags.Cert, Key: s.flags.Key,
		Username: name, Password: password, Logger: log,
	}
}
