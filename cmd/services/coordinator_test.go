package services

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
)

// Invalid HTTP flags of a coordinator fail at once, not when etcd has answered.
func TestABadHTTPSideIsReportedBeforeEtcdIsAwaited(t *testing.T) {
	dir := t.TempDir()
	lifetimes := map[pki.Kind]time.Duration{pki.Agents: time.Hour, pki.Operators: time.Hour}
	if err := pki.Init(filepath.Join(dir, "pki"), lifetimes); err != nil {
		t.Fatal(err)
	}
	asked := errors.New("etcd was asked")
	h := &Host{
		Stdout: io.Discard, Stderr: io.Discard, Shard: "default",
		Open: func(context.Context, *slog.Logger) (store.Store, func() error, error) {
			return nil, nil, asked
		},
	}
	run := func(http HTTP) error {
		c := Coordinator{
			Listen: "127.0.0.1:0", Machines: filepath.Join(dir, "machines"), PKI: filepath.Join(dir, "pki"),
			Replica: Replica{Agent: "/bin/true", SessionTTL: 5 * time.Second, HTTP: http},
		}
		return c.Run(t.Context(), h)
	}
	for _, good := range []string{"off", "127.0.0.1:0"} {
		if err := run(HTTP{HTTP: good}); !errors.Is(err, asked) {
			t.Fatalf("--http %s: %v", good, err)
		}
	}
	for what, bad := range map[string]HTTP{
		"no TLS":         {HTTP: "0.0.0.0:0"},
		"HOST:PORT":      {HTTP: "here"},
		"no such file":   {HTTP: "127.0.0.1:0", TokenFile: filepath.Join(dir, "none")},
		"not an address": {HTTP: "192.0.2.1:0"},
	} {
		var problem *Problem
		if err := run(bad); !errors.As(err, &problem) || problem.Next == "" ||
			!strings.Contains(problem.What, "--http") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
