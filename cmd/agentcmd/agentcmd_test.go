package agentcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const document = `{"schema":1,"instance":"web-0-a","group":"web","shard":"s1","coordinators":["127.0.0.1:1"],
	"report_interval":"5s","reconnect_min":"1s","reconnect_max":"30s","stop_timeout":"5s"}`

func TestWhatIsWrongIsSaidInOneLine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("file", "x")
	for name, c := range map[string]struct {
		cmd  Cmd
		want string
	}{
		"none":       {Cmd{}, "name it with --bootstrap or LEASEHOLD_BOOTSTRAP"},
		"missing":    {Cmd{Bootstrap: dir + "/none"}, "does not exist: the provider writes it"},
		"unreadable": {Cmd{Bootstrap: dir}, "is a directory"},
		"no JSON":    {Cmd{Bootstrap: file}, "file: read bootstrap document: invalid character"},
		"newer":      {Cmd{Bootstrap: write("newer", `{"schema":9}`)}, "upgrade the agent"},
		"no address": {
			Cmd{Bootstrap: write("alone", `{"schema":1,"instance":"a","shard":"s"}`)},
			"coordinators is empty",
		},
		"bad duration": {Cmd{Bootstrap: write("bad", strings.Replace(document, "30s", "soon", 1))}, "reconnect_max"},
		"bad CA": {
			Cmd{Bootstrap: write("tls",
				strings.Replace(document, `"schema":1`, `"schema":1,"ca":"PEM"`, 1))},
			"bootstrap document: ca: no certificate authority to trust",
		},
		"state dir": {Cmd{Bootstrap: write("ok", document), StateDir: file + "/below"}, "create state directory"},
		"source name": {
			Cmd{Bootstrap: write("ok3", document), Source: "localhost"},
			`source: "localhost": --source and LEASEHOLD_SOURCE take an IP address of this machine`,
		},
		"source port":  {Cmd{Bootstrap: write("ok4", document), Source: "192.0.2.7:80"}, "without port or name"},
		"source of no": {Cmd{Bootstrap: write("ok5", document), Source: "0.0.0.0"}, "IP address of this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.cmd.Run(t.Context(), slog.New(slog.DiscardHandler), "test")
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v, want one line with %q", err, c.want)
			}
		})
	}
}

// proves DET-14
func TestRunsWithoutAnyReplicaUntilItIsSignalled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	runsUntilSignalled(t, path)
	data, err := os.ReadFile(filepath.Join(filepath.Dir(path), "agent.json"))
	if err != nil || !json.Valid(data) {
		t.Errorf("state beside the document is %q, %v", data, err)
	}
}

// runsUntilSignalled runs an agent until it has found no replica, and ends it.
func runsUntilSignalled(t *testing.T, bootstrap string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	refused := &waiter{text: "replica does not answer", found: make(chan struct{})}
	go func() {
		done <- (&Cmd{Bootstrap: bootstrap}).Run(ctx, newJSONLogger(refused, slog.LevelInfo), "test")
	}()
	select {
	case <-refused.found:
	case err := <-done:
		t.Fatalf("agent ended: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v, want nil", err)
	}
}

func TestStreamsComeFromTheGivenAddress(t *testing.T) {
	const source = "127.0.0.77"
	replica, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Close()
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(path, []byte(strings.Replace(document, "127.0.0.1:1", replica.Addr().String(), 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		err := (&Cmd{Bootstrap: path, Source: source}).Run(ctx, slog.New(slog.DiscardHandler), "test")
		replica.Close()
		done <- err
	}()
	c, err := replica.Accept()
	if err != nil {
		t.Fatalf("no agent came: %v; agent ended: %v", err, <-done)
	}
	if from, ok := c.RemoteAddr().(*net.TCPAddr); !ok || from.IP.String() != source {
		t.Errorf("the agent came from %s, want %s", c.RemoteAddr(), source)
	}
	c.Close()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v, want nil", err)
	}
}

// waiter is a log that signals when a line with a text was written.
type waiter struct {
	text  string
	found chan struct{}
	done  bool
}

func (w *waiter) Write(p []byte) (int, error) {
	if !w.done && bytes.Contains(p, []byte(w.text)) {
		w.done = true
		close(w.found)
	}
	return len(p), nil
}
