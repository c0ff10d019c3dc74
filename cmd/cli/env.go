package cli

import (
	"context"
	"io"
	"time"

	"github.com/alecthomas/kong"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/cmd/rights"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/store"
)

// Env holds what a command needs from its process. All fields are required, except Columns,
// Settings, SecretsKey, ServerSettings, DevData, Adapters and Members.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Whether a person uses that stream. If none uses Stdin, no question is asked.
	StdinTerminal, StdoutTerminal, StderrTerminal bool
	// Whether a terminal shows colours (not with NO_COLOR or TERM=dumb).
	Colour bool
	// Columns is the width of the terminal at Stdout; 0: 80.
	Columns int

	// RequestTimeout is how long a request to etcd may take without --timeout; 0: 5 s.
	RequestTimeout time.Duration

	Now      func() time.Time
	RandomID func() string
	User     string // author of orders: name@host
	// Settings is the operator's settings file, unless --config names another; "" or a missing
	// file: none.
	Settings string
	// DevData is the data directory of leasehold dev on this machine, with the address of its etcd
	// while it runs; "": the home directory is unknown.
	DevData string
	// ServerSettings is the settings file that leasehold server writes in its default directory.
	ServerSettings string
	// SecretsKey holds keys for secrets from the environment; "": none.
	SecretsKey string
	Version    string
	// Adapters are those that this program links for a coordinator.
	Adapters services.Adapters
	// Etcd is the version of the etcd that leasehold server runs.
	Etcd string

	// Open opens the store. The returned function closes it.
	Open func(context.Context, Connection) (store.Store, func() error, error)
	// OpenAs opens the store as a user of etcd, over the connection of another client, for the API.
	OpenAs func(ctx context.Context, c Connection, user, password string) (store.Store, func() error, error)
	// Rights opens etcd's users and roles. The returned function closes it.
	Rights func(context.Context, Connection) (rights.Etcd, func() error, error)
	// Members asks etcd's members for their state; nil: not possible.
	Members func(context.Context, Connection) (store.Members, error)
	// Ask prompts the operator for a secret at the terminal, without echo.
	Ask func(ctx context.Context, prompt string) ([]byte, error)
	// Edit lets the operator edit the file at this path, and returns afterwards.
	Edit func(ctx context.Context, path string) error
}

// Connection is how to reach etcd, and how to authenticate.
type Connection = program.Connection

// Globals are the flags of every command.
type Globals struct {
	Endpoints []string         `help:"Endpoints of etcd (default: ${default}, or a running leasehold dev's)." env:"LEASEHOLD_ENDPOINTS" default:"127.0.0.1:2379" placeholder:"HOST:PORT"`
	Shard     string           `help:"Name of the shard (default: ${default})." env:"LEASEHOLD_SHARD" default:"default" placeholder:"NAME"`
	CACert    string           `name:"cacert" help:"Certificate authority of etcd's certificate." env:"LEASEHOLD_CACERT" type:"path" placeholder:"FILE"`
	Cert      string           `help:"Client certificate for etcd." env:"LEASEHOLD_CERT" type:"path" placeholder:"FILE"`
	Key       string           `help:"Key of the client certificate." env:"LEASEHOLD_KEY" type:"path" placeholder:"FILE"`
	User      string           `help:"etcd user and password." env:"LEASEHOLD_USER" placeholder:"NAME:PASSWORD"`
	Output    string           `short:"o" help:"Output format: ${enum}." enum:"table,wide,json,yaml" default:"table" placeholder:"FORMAT"`
	NoColor   bool             `help:"Print without colours (also with NO_COLOR or TERM=dumb)."`
	Config    string           `help:"Settings file of this program (default: leasehold/config.yaml in your configuration directory, if it exists)." env:"LEASEHOLD_CONFIG" placeholder:"FILE"`
	Timeout   time.Duration    `help:"Time limit (default: ${request_timeout} for each request to etcd, ${wait_timeout} for --wait)." placeholder:"DURATION"`
	Version   kong.VersionFlag `help:"Show the version of this program."`
}

// The time limits without --timeout.
const (
	requestTimeout = 5 * time.Second
	waitTimeout    = 10 * time.Minute
)

func (inv *Invocation) screen() output.Screen {
	width := inv.env.Columns
	if width <= 0 {
		width = output.LineWidth
	}
	return output.Screen{
		W: inv.env.Stdout, Terminal: inv.env.StdoutTerminal,
		Colour: inv.env.StdoutTerminal && inv.env.Colour && !inv.flags.NoColor, Width: width,
	}
}

// aside returns the writer for progress and warnings.
func (inv *Invocation) aside() output.Screen {
	return output.Screen{
		W: inv.env.Stderr, Terminal: inv.env.StderrTerminal,
		Colour: inv.env.StderrTerminal && inv.env.Colour && !inv.flags.NoColor,
	}
}

func (inv *Invocation) wide() bool { return inv.flags.Output == "wide" }

// documents reports whether --output asks for JSON or YAML.
func (inv *Invocation) documents() bool {
	return inv.flags.Output == "json" || inv.flags.Output == "yaml"
}

// onlyShows refuses to confirm a change together with an --output of records: with that, repair and
// recover print what they would do, and write nothing.
func (inv *Invocation) onlyShows(confirm []string) error {
	if o := inv.flags.Output; len(confirm) > 0 && inv.documents() {
		return failure(Usage, "run it without -o "+o+", which only shows what would be written",
			"--confirm and -o %s exclude each other", o)
	}
	return nil
}

// records prints the result as JSON or YAML if --output asks for that.
func (inv *Invocation) records(document any) (done bool, err error) {
	return output.Document(inv.env.Stdout, inv.flags.Output, document)
}
