package main

import (
	"crypto/rand"
	"fmt"
	"os"
	osuser "os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/adapters"
	"github.com/leasehold/leasehold/cmd/cli"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/cmd/server"
	"github.com/leasehold/leasehold/store/embedetcd"
	"golang.org/x/term"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(int(run()))
}

func run() cli.Code {
	env := environment()
	if answered, _ := cli.Complete(env); answered {
		return cli.Done // a shell asked for completions, and cannot show an error
	}
	ctx, stop := program.UntilInterrupted()
	defer stop()
	return cli.Run(ctx, env, os.Args[1:])
}

// environment returns what this process has.
func environment() cli.Env {
	return cli.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdinTerminal: term.IsTerminal(int(os.Stdin.Fd())), StdoutTerminal: program.IsTerminal(os.Stdout),
		StderrTerminal: program.IsTerminal(os.Stderr),
		Colour:         os.Getenv("NO_COLOR") == "",
		Columns:        program.Columns(os.Stdout),
		Now:            time.Now,
		RandomID:       func() string { return strings.ToLower(rand.Text()) },
		User:           user(),
		Settings:       settings(),
		Version:        version,
		Adapters:       adapters.All(),
		Etcd:           embedetcd.Version,
		Open:           program.OpenEtcd,
		OpenAs:         program.OpenEtcdAs,
		Rights:         openRights,
		Members:        program.AskEtcd,
		Edit:           edit,
		Ask:            askSecret,

		SecretsKey: secretsKey(), DevData: devData(), ServerSettings: server.Place{Dir: server.DefaultDir}.Settings(),
	}
}

// settings returns the operator's settings file for this program, if there is one.
func settings() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "" // no home directory, so no settings file
	}
	return filepath.Join(dir, "leasehold", "config.yaml")
}

// user returns the operator's name, as far as this machine knows.
func user() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := fmt.Sprintf("uid%d", os.Getuid())
	if u, err := osuser.Current(); err == nil {
		name = u.Username
	}
	return name + "@" + host
}
