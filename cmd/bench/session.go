package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/store"
)

// Session is one run of one command.
type Session struct {
	env   Env
	flags *Globals
}

// named reports whether an etcd was named. Otherwise the bench starts its own.
func (s *Session) named() bool { return len(s.flags.Endpoints) > 0 }

// where describes the etcd that was named.
func (s *Session) where() string { return strings.Join(s.flags.Endpoints, ", ") }

// open opens the bench's own etcd at an address or, if that is empty, the one that the flags name.
func (s *Session) open(ctx context.Context, address string, log *slog.Logger) (store.Store, func() error, error) {
	conn := program.Connection{Endpoints: []string{address}, Logger: log}
	if address == "" {
		conn = s.connection(log)
		if wrong, found := program.NoAddress(conn.Endpoints); found {
			return nil, nil, program.Fail(program.Usage, name+" etcd --endpoints 127.0.0.1:2379",
				"--endpoints: %q: must be HOST:PORT, several with commas between", wrong)
		}
	}
	st, closer, err := s.env.Open(ctx, conn)
	if err != nil {
		return nil, nil, openFailed(ctx, conn, err)
	}
	return st, closer, nil
}

// connection returns how to connect to the etcd that was named.
func (s *Session) connection(log *slog.Logger) program.Connection {
	user, password, _ := strings.Cut(s.flags.User, ":")
	return program.Connection{
		Endpoints: s.flags.Endpoints, CACert: s.flags.CACert, Cert: s.flags.Cert, Key: s.flags.Key,
		Username: user, Password: password, Logger: log,
	}
}

// openFailed explains why an etcd could not be opened, and what to do.
func openFailed(ctx context.Context, conn program.Connection, err error) error {
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, store.ErrDenied):
		return program.Fail(program.Failed, "log in as root, with --user or --cert and --key", "%s",
			program.Joined(err))
	case errors.Is(err, store.ErrUnavailable):
		return program.Fail(program.Unreachable, whatHelps(conn), "%s", program.Joined(err)) // the error names the endpoints
	default:
		return program.Fail(program.Usage, name+" --help", "%s", program.Joined(err))
	}
}

func whatHelps(conn program.Connection) string {
	how := "give --cacert, --cert and --key if it speaks TLS"
	if conn.CACert != "" || conn.Cert != "" {
		how = "see that --cacert, --cert and --key are its own"
	}
	return "start etcd there, and " + how + "; or leave out --endpoints, and the bench starts its own"
}

// partEnvironment returns the environment by which parts find the etcd that was named. Arguments
// would show the password to every user of the machine.
func (s *Session) partEnvironment() (env []string) {
	if !s.named() {
		return nil
	}
	for variable, value := range map[string]string{
		"BENCH_ENDPOINTS": strings.Join(s.flags.Endpoints, ","),
		"CACERT":          s.flags.CACert, "CERT": s.flags.Cert, "KEY": s.flags.Key, "USER": s.flags.User,
	} {
		if value != "" {
			env = append(env, "LEASEHOLD_"+variable+"="+value)
		}
	}
	return env
}

func (s *Session) screen() output.Screen {
	width := s.env.Columns
	if width <= 0 {
		width = output.LineWidth
	}
	return output.Screen{
		W: s.env.Stdout, Terminal: s.env.StdoutTerminal, Colour: s.colour(s.env.StdoutTerminal),
		Width: width,
	}
}

// aside returns where progress and warnings go.
func (s *Session) aside() output.Screen {
	return output.Screen{W: s.env.Stderr, Terminal: s.env.StderrTerminal, Colour: s.colour(s.env.StderrTerminal)}
}

func (s *Session) colour(terminal bool) bool { return terminal && s.env.Colour && !s.flags.NoColor }

func (s *Session) wide() bool { return s.flags.Output == "wide" }

// records prints the result as JSON or YAML if --output asks for that.
func (s *Session) records(document any) (done bool, err error) {
	return output.Document(s.env.Stdout, s.flags.Output, document)
}

func (s *Session) note(format string, args ...any) {
	fmt.Fprintf(s.env.Stderr, format+"\n", args...)
}

func (s *Session) warn(format string, args ...any) {
	s.note("%s %s", s.aside().Notice("warning:"), fmt.Sprintf(format, args...))
}
