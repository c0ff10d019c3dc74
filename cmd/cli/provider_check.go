package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/suite"
)

// ProviderTest is the command provider test.
type ProviderTest struct {
	Providers string        `required:"" type:"path" help:"File of providers, as a coordinator reads it with --providers." placeholder:"FILE"`
	Provider  string        `help:"Provider to test, if the file names several." placeholder:"NAME"`
	File      string        `short:"f" help:"Group file whose template the machines get." placeholder:"FILE"`
	Only      []string      `help:"Test only these promises." placeholder:"NAME"`
	Kill      string        `help:"Shell command that ends a machine behind the provider's back; $$INSTANCE, $$SHARD and $$REF name it." placeholder:"COMMAND"`
	Remains   string        `help:"Shell command that prints what is left of a deleted machine; it prints nothing if nothing is left." placeholder:"COMMAND"`
	Patience  time.Duration `help:"How long a machine may take to come up or go down (default: ${default})." default:"2m"`
	Poll      time.Duration `help:"How often machines are listed while waiting (default: ${default})." default:"1s"`
	List      bool          `help:"List the promises without testing."`
	services.KeyFile
}

// promiseShown is the result of one promise.
type promiseShown struct {
	Promise string        `json:"promise"`
	Outcome suite.Outcome `json:"outcome"`
	Why     []string      `json:"why,omitempty"`
	Took    string        `json:"took"`
}

// Run runs the suite.
func (c *ProviderTest) Run(ctx context.Context, inv *Invocation) error {
	names := suite.Promises()
	if c.List {
		_, err := fmt.Fprintln(inv.env.Stdout, strings.Join(names, "\n"))
		return err
	}
	if len(c.Only) > 0 {
		for _, name := range c.Only {
			if !slices.Contains(names, name) {
				return failure(Usage, "leasehold provider test --list", "--only: there is no promise %q", name)
			}
		}
		names = c.Only
	}
	p, err := c.open(ctx, inv)
	if err != nil {
		return err
	}
	h := suite.Harness{
		Open:     func() (provider.Provider, error) { return p, nil },
		Patience: c.Patience, Poll: c.Poll,
	}
	if c.Kill != "" {
		h.Kill = func(m provider.Machine) error { _, err := shell(ctx, c.Kill, m); return err }
	}
	if c.Remains != "" {
		h.Remains = func(m provider.Machine) string {
			left, err := shell(ctx, c.Remains, m)
			if err != nil {
				return err.Error()
			}
			return left
		}
	}
	if h.Template, err = c.template(inv); err != nil {
		return err
	}
	return c.play(ctx, inv, h, names)
}

// open opens the selected provider.
func (c *ProviderTest) open(ctx context.Context, inv *Invocation) (provider.Provider, error) {
	entries, err := inv.env.Adapters.Kinds.Read(c.Providers)
	if err != nil {
		var problems yamlfile.Problems
		if errors.As(err, &problems) {
			return nil, &misspelt{Problems: problems, next: "correct " + c.Providers}
		}
		return nil, failure(Failed, "give the file of providers with --providers", "%s", err)
	}
	if len(entries) == 0 {
		return nil,
			failure(Usage, "name providers in "+c.Providers+", as docs/providers has them", "the file names no provider")
	}
	var known []string
	for _, e := range entries {
		known = append(known, e.Name)
	}
	if c.Provider == "" && len(entries) > 1 {
		return nil, failure(Usage, "leasehold provider test --provider NAME", "%s names several providers: %s", c.Providers,
			strings.Join(known, ", "))
	}
	for _, e := range entries {
		if c.Provider != "" && e.Name != c.Provider {
			continue
		}
		log := slog.New(slog.NewTextHandler(inv.env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		p, err := e.Open(ctx, log)
		if err != nil {
			return nil, failure(Failed, "correct "+c.Providers, "%s", err)
		}
		if user, uses := p.(provider.SecretUser); uses {
			user.UseSecrets(c.secrets(ctx, inv))
		}
		return p, nil
	}
	return nil, failure(NotFound, "give one of them with --provider", "%s has no provider %q; it has %s", c.Providers,
		c.Provider, strings.Join(known, ", "))
}

// secrets finds the values of the shard's secrets, as a coordinator does. The shard and the keys
// are only looked for when a provider asks for the first one.
func (c *ProviderTest) secrets(ctx context.Context, inv *Invocation) func(name string) (string, error) {
	type opened struct {
		ring encryption.Ring
		of   sealing
	}
	read := sync.OnceValues(func() (o opened, err error) {
		path, err := inv.keyPath(c.KeyFile)
		if err != nil {
			return o, err
		}
		if o.ring, err = inv.keyring(path); err != nil {
			return o, err
		}
		o.of, err = inv.readSealing(ctx)
		return o, err
	})
	return func(name string) (string, error) {
		o, err := read()
		if err != nil {
			return "", fmt.Errorf("secret %s: %w", name, err)
		}
		for _, v := range o.of.secrets {
			if v.Record.Name == name {
				value, err := o.ring.Open(o.of.shard, v.Record)
				return string(value), err
			}
		}
		return "", fmt.Errorf("there is no secret %s: set it with leasehold secret set %s", name, name)
	}
}

// template returns the provider's part of the group file's template.
func (c *ProviderTest) template(inv *Invocation) (provider.Template, error) {
	if c.File == "" {
		return provider.Template{}, nil
	}
	f := Files{Files: []string{c.File}}
	files, err := inv.parseFiles(f)
	if err != nil {
		return provider.Template{}, err
	}
	groups, err := judgeFiles(f, files, nil)
	if err != nil {
		return provider.Template{}, err
	}
	if len(groups) != 1 {
		return provider.Template{}, failure(Usage, "give a file with one group", "%s has %d groups", c.File, len(groups))
	}
	g := groups[0].Group
	t := g.Template
	return provider.Template{
		InstanceTypes: t.Types(), Zones: t.Zones, Spot: g.InstanceSpec().Spot, Tags: t.Tags,
		Settings: t.Settings,
	}, nil
}

// play tests the promises, and shows each as soon as it is tested.
func (c *ProviderTest) play(ctx context.Context, inv *Invocation, h suite.Harness, names []string) error {
	shown := []promiseShown{}
	count := map[suite.Outcome]int{}
	var (
		mu      sync.Mutex // cases call from goroutines of their own
		made    bool
		notMade error
	)
	h.Created = func(err error) {
		mu.Lock()
		defer mu.Unlock()
		made = made || err == nil
		notMade = err
	}
	// If no machine can be created at all, the other promises would fail in the same way, each
	// after a while.
	hopeless := func() error {
		mu.Lock()
		defer mu.Unlock()
		if made {
			return nil
		}
		return notMade
	}
	table := inv.flags.Output == "table" || inv.flags.Output == "wide"
	screen := inv.screen()
	for _, name := range names {
		if inv.env.StderrTerminal {
			fmt.Fprintf(inv.env.Stderr, "\r%s …", name)
		}
		r := suite.Check(ctx, h, name)
		if inv.env.StderrTerminal {
			fmt.Fprintf(inv.env.Stderr, "\r%s\r", strings.Repeat(" ", len(name)+2))
		}
		count[r.Outcome]++
		shown = append(shown, promiseShown{
			Promise: name, Outcome: r.Outcome, Why: r.Why, Took: r.Took.Round(time.Millisecond).String(),
		})
		if table {
			if err := writePromise(screen, r); err != nil {
				return err
			}
		}
		if ctx.Err() != nil || hopeless() != nil {
			break
		}
	}
	if done, err := inv.records(shown); done && err != nil {
		return err
	}
	if table {
		fmt.Fprintf(inv.env.Stdout, "\n%d proved, %d failed, %d not proved\n", count[suite.Proved], count[suite.Failed],
			count[suite.NotProved])
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case hopeless() != nil && len(shown) < len(names):
		return failure(Failed, "correct "+c.Providers+" or the template, and run this again",
			"no machine could be made, so %s not tested: %s", counted(len(names)-len(shown), "other promise is",
				"other promises are"), hopeless())
	case count[suite.Failed] > 0:
		return failure(Failed, "docs/providers/exec.md says what a provider promises", "%s not kept",
			counted(count[suite.Failed], "promise is", "promises are"))
	}
	return nil
}

func writePromise(to output.Screen, r suite.Result) error {
	paint := map[suite.Outcome]func(string) string{
		suite.Proved: to.Good, suite.Failed: to.Alarm, suite.NotProved: to.Notice,
	}[r.Outcome]
	_, err := fmt.Fprintf(to.W, "%s  %-28s %6.1fs\n", paint(fmt.Sprintf("%-10s", r.Outcome)), r.Promise,
		r.Took.Seconds())
	for _, why := range r.Why {
		if err == nil {
			_, err = fmt.Fprintf(to.W, "            %s\n", strings.ReplaceAll(why, "\n", "\n            "))
		}
	}
	return err
}

// shell runs an operator's command for a machine.
func shell(ctx context.Context, command string, m provider.Machine) (string, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "INSTANCE="+m.Instance, "SHARD="+m.Shard, "REF="+m.Ref)
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", command, err, text)
	}
	return text, nil
}
