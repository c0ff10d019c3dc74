package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/signal"
	osuser "os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/cmd/cli"
	"golang.org/x/term"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(int(run()))
}

func run() cli.Code {
	env := environment()
	if answered, err := cli.Complete(env); answered || err != nil {
		return cli.Done // a shell asked how the line might go on, and has nowhere to show an error
	}
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP) // a terminal that closes leaves nothing behind either
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	go func() { // a second Ctrl-C ends the process at once, whatever it is doing
		<-ctx.Done()
		stop()
	}()
	return cli.Run(ctx, env, os.Args[1:])
}

// environment is what this process has.
func environment() cli.Env {
	return cli.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdinTerminal: term.IsTerminal(int(os.Stdin.Fd())), StdoutTerminal: isTerminal(os.Stdout), StderrTerminal: isTerminal(os.Stderr),
		Colour:   os.Getenv("NO_COLOR") == "",
		Columns:  columns(os.Stdout),
		Now:      time.Now,
		RandomID: func() string { return strings.ToLower(rand.Text()) },
		User:     user(),
		Settings: settings(),
		Version:  version,
		Open:     openEtcd,
		Rights:   openRights,
		Edit:     edit,
		Ask:      askSecret,

		SecretsKey: secretsKey(), DevData: devData(),
	}
}

// settings is where the operator's settings for this program are, if there are any.
func settings() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "" // nobody's home: there are none
	}
	return filepath.Join(dir, "leasehold", "config.yaml")
}

// isTerminal says whether a person is there who can be shown more than plain text.
func isTerminal(f *os.File) bool {
	return os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// columns is how wide a terminal is; 0 if nobody knows.
func columns(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// user is who gives orders, as far as this machine knows.
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
