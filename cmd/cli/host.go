package cli

import (
	"log/slog"
	"strings"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/cmd/supervised"
	"github.com/leasehold/leasehold/store"
)

// host returns what the services need from the process and from the flags of all commands.
func (s *Session) host() *services.Host {
	return &services.Host{
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
}

// connection returns how to connect to etcd.
func (s *Session) connection(log *slog.Logger) Connection {
	name, password, _ := strings.Cut(s.flags.User, ":")
	return Connection{
		Endpoints: s.flags.Endpoints, CACert: s.flags.CACert, Cert: s.flags.Cert, Key: s.flags.Key,
		Username: name, Password: password, Logger: log,
	}
}
