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

// Invocation is one run of one command.
type Invocation struct {
	env   Env
	flags *Globals
}

// named reports whether an etcd was named. Otherwise the bench starts its own.
func (inv *Invocation) named() bool { return len(inv.flags.Endpoints) > 0 }

// where describes the etcd that was named.
func (inv *Invocation) where() string { return strings.Join(inv.flags.Endpoints, ", ") }

// open opens the bench's own etcd at an address or, if that is empty, the one that the flags name.
func (inv *Invocation) open(ctx context.Context, address string, log *slog.Logger) (store.Store, func() error, error) {
	conn := program.Connection{Endpoints: []string{address}, Logger: log}
	if address == "" {
		conn = inv.connection(log)
		if wrong, found := program.NoAddress(conn.Endpoints); found {
			return nil, nil, program.Fail(program.Usage, name+" etcd --endpoints 127.0.0.1:2379",
				"--endpoints: %q: must be HOST:PORT, several with commas between", wrong)
		}
	}
	st, closer, err := inv.env.Open(ctx, conn)
	if err != nil {
		return nil, nil, openFailed(ctx, conn, err)
	}
	return st, closer, nil
}

// connection returns how to connect to the etcd that was named.
func (inv *Invocation) connection(log *slog.Logger) program.Connection {
	user, password, _ := strings.Cut(inv.flags.User, ":")
	return program.Connection{
		Endpoints: inv.flags.Endpoints, CACert: inv.flags.CACert, Cert: inv.flags.Cert, Key: inv.flags.Key,
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
func (inv *Invocation) partEnvironment() (env []string) {
	if !inv.named() {
		return nil
	}
	for variable, value := range map[string]string{
		"BENCH_ENDPOINTS": strings.Join(inv.flags.Endpoints, ","),
		"CACERT":          inv.flags.CACert, "CERT": inv.flags.Cert, "KEY": inv.flags.Key, "USER": inv.flags.User,
	} {
		if value != "" {
			env = append(env, "LEASEHOLD_"+variable+"="+value)
		}
	}
	return env
}

func (inv *Invocation) screen() output.Screen {
	width := inv.env.Columns
	if width <= 0 {
		width = output.LineWidth
	}
	return output.Screen{
		W: inv.env.Stdout, Terminal: inv.env.StdoutTerminal, Colour: inv.colour(inv.env.StdoutTerminal),
		Width: width,
	}
}

// aside returns where progress and warnings go.
func (inv *Invocation) aside() output.Screen {
	return output.Screen{W: inv.env.Stderr, Terminal: inv.env.StderrTerminal, Colour: inv.colour(inv.env.StderrTerminal)}
}

func (inv *Invocation) colour(terminal bool) bool {
	return terminal && inv.env.Colour && !inv.flags.NoColor
}

func (inv *Invocation) wide() bool { return inv.flags.Output == "wide" }

// records prints the result as JSON or YAML if --output asks for that.
func (inv *Invocation) records(document any) (done bool, err error) {
	return output.Document(inv.env.Stdout, inv.flags.Output, document)
}

func (inv *Invocation) note(format string, args ...any) {
	fmt.Fprintf(inv.env.Stderr, format+"\n", args...)
}

func (inv *Invocation) warn(format string, args ...any) {
	inv.note("%s %s", inv.aside().Notice("warning:"), fmt.Sprintf(format, args...))
}
