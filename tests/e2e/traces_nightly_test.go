//go:build nightly

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// A collector of OpenTelemetry's own takes the traces of a coordinator and passes them on: a killed
// machine is one trace, from the first sign until its replacement is healthy.
//
// proves OBS-3
func TestTracesReachACollector(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	tool := buildCollector(t)
	var mu sync.Mutex
	names := map[string][]string{} // by trace
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct{ TraceID, Name string }
				}
			}
		}
		if err == nil {
			err = json.Unmarshal(body, &got)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Errorf("what the collector passes on: %v: %s", err, body)
		}
		for _, of := range got.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				for _, s := range scope.Spans {
					names[s.TraceID] = append(names[s.TraceID], s.Name)
				}
			}
		}
	}))
	t.Cleanup(receiver.Close)
	address := l.address()
	l.start("collector", l.command(tool, "--config", l.file("collector.yaml", `
receivers: {otlp: {protocols: {grpc: {endpoint: "`+address+`"}}}}
exporters: {otlp_http: {endpoint: "`+receiver.URL+`", encoding: json, compression: none}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}
`)))
	l.startDev("--listen", l.address(), "--http", "off", "--otlp-endpoint", "http://"+address)
	l.follow()
	l.await("the group", func() bool { return l.h.complete("demo", 3) })
	l.signalAgent(l.h.wanted("demo")[0], syscall.SIGKILL)
	l.await("the whole trace", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, spans := range names {
			slices.Sort(spans)
			if slices.Equal(spans, []string{"boot", "create", "decide", "detect", "heal", "healthy"}) {
				return len(names) == 1
			}
		}
		return false
	})
}

// buildCollector builds a collector of the parts that scripts/tools pins, and returns its path.
func buildCollector(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	pinned := filepath.Join("..", "..", "scripts", "tools", "collector")
	for from, to := range map[string]string{
		filepath.Join(pinned, "go.mod"): "go.mod", filepath.Join(pinned, "go.sum"): "go.sum",
		filepath.Join("testdata", "collector.go.txt"): "main.go",
	} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "collector", ".")
	build.Dir = dir
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the collector: %v\n%s", err, said)
	}
	return filepath.Join(dir, "collector")
}
