package cli

import (
	"context"
	"io"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/cmd/rights"
	"github.com/leasehold/leasehold/store"
)

// Env is what a command needs of the world. Everything in it must be set, Columns, Settings,
// SecretsKey and DevData excepted.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Whether there is a person at that end. Without one at Stdin nothing is asked.
	StdinTerminal, StdoutTerminal, StderrTerminal bool
	// Whether a terminal shows colours (NO_COLOR and TERM=dumb say that it does not).
	Colour bool
	// Columns is how many characters a line of the terminal at Stdout has; 0: 80 are taken for it.
	Columns int

	Now      func() time.Time
	RandomID func() string
	User     string // who gives orders: name@host
	// Settings is the file with the operator's settings for this program, if --config names no
	// other; "" or a file that is not there: none.
	Settings string
	// DevData is the data directory of leasehold dev on this machine, with the address of its etcd
	// while it runs; "": the home directory is unknown.
	DevData string
	// SecretsKey is keys for secrets from the environment; "": there are none.
	SecretsKey string
	Version    string

	// Open opens the store. The function that comes with it closes it again.
	Open func(context.Context, Connection) (store.Store, func() error, error)
	// Rights opens etcd's users and roles. The function that comes with it closes it again.
	Rights func(context.Context, Connection) (rights.Etcd, func() error, error)
	// Ask lets the operator type a secret at the terminal, which does not show it.
	Ask func(ctx context.Context, prompt string) ([]byte, error)
	// Edit lets the operator change the file at this path, and returns when that is done.
	Edit func(ctx context.Context, path string) error
}

// Connection says where etcd is, and who asks.
type Connection = program.Connection

// Globals are the flags that every command has.
type Globals struct {
	Endpoints []string      `help:"Endpoints of etcd (default: ${default}, or those of a running leasehold dev)." env:"LEASEHOLD_ENDPOINTS" default:"127.0.0.1:2379" placeholder:"HOST:PORT"`
	Shard     string        `help:"Name of the shard (default: ${default})." env:"LEASEHOLD_SHARD" default:"default" placeholder:"NAME"`
	CACert    string        `name:"cacert" help:"Certificate authority of etcd's certificate." env:"LEASEHOLD_CACERT" type:"path" placeholder:"FILE"`
	Cert      string        `help:"Client certificate for etcd." env:"LEASEHOLD_CERT" type:"path" placeholder:"FILE"`
	Key       string        `help:"Key of the client certificate." env:"LEASEHOLD_KEY" type:"path" placeholder:"FILE"`
	User      string        `help:"etcd user and password." env:"LEASEHOLD_USER" placeholder:"NAME:PASSWORD"`
	Output    string        `short:"o" help:"Output format: ${enum}." enum:"table,wide,json,yaml" default:"table" placeholder:"FORMAT"`
	NoColor   bool          `help:"Print without colours (also with NO_COLOR or TERM=dumb)."`
	Config    string        `help:"Settings file of this program (default: leasehold/config.yaml in your configuration directory, if it exists)." env:"LEASEHOLD_CONFIG" placeholder:"FILE"`
	Timeout   time.Duration `help:"Time limit (default: ${request_timeout} for each request to etcd, ${wait_timeout} for --wait)." placeholder:"DURATION"`
}

// The limits without --timeout.
const (
	requestTimeout = 5 * time.Second
	waitTimeout    = 10 * time.Minute
)

func (s *Session) screen() output.Screen {
	width := s.env.Columns
	if width <= 0 {
		width = output.LineWidth
	}
	return output.Screen{
		W: s.env.Stdout, Terminal: s.env.StdoutTerminal,
		Colour: s.env.StdoutTerminal && s.env.Colour && !s.flags.NoColor, Width: width,
	}
}

// aside is where progress and warnings go.
func (s *Session) aside() output.Screen {
	return output.Screen{
		W: s.env.Stderr, Terminal: s.env.StderrTerminal,
		Colour: s.env.StderrTerminal && s.env.Colour && !s.flags.NoColor,
	}
}

func (s *Session) wide() bool { return s.flags.Output == "wide" }

// records writes what was found as JSON or YAML, if that was asked for.
func (s *Session) records(document any) (done bool, err error) {
	switch s.flags.Output {
	case "json":
		return true, output.JSON(s.env.Stdout, document)
	case "yaml":
		return true, output.YAML(s.env.Stdout, document)
	default:
		return false, nil
	}
}
