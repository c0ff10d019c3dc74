package web_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/web"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
	"github.com/leasehold/leasehold/store/storetest"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

// scrape is what a replica tells of itself.
type scrape struct {
	help, kind map[string]string              // by name
	labels     map[string]map[string]struct{} // names of labels, by name
	series     []string                       // as they stand, without values
	values     map[string]string              // by series
	text       string
}

var seriesLine = regexp.MustCompile(`^([a-z_]+)(\{[^}]*\})? (\S+)$`)

func (s *site) scrape() scrape {
	s.t.Helper()
	code, body, h := s.get("/metrics")
	if code != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
		s.t.Fatalf("%d %v", code, h)
	}
	out := scrape{
		help: map[string]string{}, kind: map[string]string{}, labels: map[string]map[string]struct{}{},
		values: map[string]string{}, text: body,
	}
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, help, _ := strings.Cut(rest, " ")
			out.help[name] = help
		} else if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			out.kind[name] = kind
		} else if m := seriesLine.FindStringSubmatch(line); m != nil {
			out.series = append(out.series, m[1]+m[2])
			out.values[m[1]+m[2]] = m[3]
			name := m[1]
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base := strings.TrimSuffix(name, suffix); out.kind[base] == "histogram" {
					name = base
				}
			}
			if out.labels[name] == nil {
				out.labels[name] = map[string]struct{}{}
			}
			for _, l := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(m[2], -1) {
				if l[1] != "le" {
					out.labels[name][l[1]] = struct{}{}
				}
			}
		}
	}
	return out
}

// told is the text of a scrape.
func (s *site) told() string {
	s.t.Helper()
	_, body, _ := s.get("/metrics")
	return body
}

// ours are the names of the product's metrics, in order.
func (s scrape) ours() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.kind)),
		func(name string) bool { return !strings.HasPrefix(name, "leasehold_") })
}

// of counts the series of a group.
func (s scrape) of(group string) int {
	n := 0
	for _, series := range s.series {
		if strings.Contains(series, `group="`+group+`"`) {
			n++
		}
	}
	return n
}

// shard is a database in memory, with replicas at work on it.
type shard struct {
	t  *testing.T
	db *memstore.Database
	st *memstore.Store
}

func newShard(t *testing.T) *shard {
	t.Helper()
	s := &shard{t: t, db: memstore.New(memstore.Config{})}
	t.Cleanup(s.db.Close)
	s.st = s.db.Connect()
	return s
}

func (s *shard) put(key string, value []byte) {
	s.t.Helper()
	if _, err := s.st.Commit(s.t.Context(), store.Txn{Writes: []store.Write{store.Put(key, value)}}); err != nil {
		s.t.Fatal(err)
	}
}

// start starts a replica with its HTTP side.
func (s *shard) start(id string) (*site, *memstore.Store, *web.Metrics) {
	s.t.Helper()
	conn, metrics, machines := s.db.Connect(), web.NewMetrics("test"), fake.NewProvider(fake.Config{}, fake.Inside{})
	storetest.CreateShard(s.t, conn, "test")
	r, err := coordinator.New(coordinator.Config{Shard: "test", ID: id, Listen: loopback, Version: "test"},
		coordinator.Deps{
			Store: metrics.Store(conn), Providers: map[string]provider.Provider{"mem": machines},
			Logger: slog.New(slog.DiscardHandler), Meter: metrics,
		})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("replica %s: %v", id, err)
		}
		machines.Close()
	})
	return open(s.t, web.Config{Listen: loopback}, web.Deps{Replica: r, Metrics: metrics, Store: conn}), conn, metrics
}

// everything makes every metric show at least once.
func everything(t *testing.T) scrape {
	t.Helper()
	s := newShard(t)
	g := store.DefaultGroup()
	g.Name, g.Provider = "web", "mem"
	g.Scale = &store.ScaleSpec{Max: 2, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}}}
	g.Complete()
	s.put(store.KeysOf("test").Group("web"), store.Encode(g))
	site, _, m := s.start("a")
	m.Decided(&plan.Action{Rule: "HEAL-2", To: store.Pending})
	m.Held(&store.Blocked{Kind: store.BlockedByStorm})
	m.Asked("create", time.Second)
	m.Called("mem", "create", time.Second, nil)
	m.Detected(store.Lost, time.Second)
	m.Repaired(store.Lost, time.Second)
	m.StreamRefused("RETIRED")
	m.StreamClosed("lost")
	site.get("/nowhere")
	eventually(t, "all gauges", func() bool { return strings.Contains(site.told(), "leasehold_group_size") })
	return site.scrape()
}

const reference = "../../docs/metrics.md"

// The page of metrics is what a replica tells, and every metric is as Prometheus would have it.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	told := everything(t)
	if problems, err := promlint.New(strings.NewReader(told.text)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
	text, err := os.ReadFile(reference)
	if err != nil && !*update {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "| Metric |")
	var table strings.Builder
	table.WriteString("| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n")
	for _, name := range append(told.ours(), "leasehold_certificate_remaining_seconds") {
		kind, help, labels := told.kind[name], told.help[name], slices.Sorted(maps.Keys(told.labels[name]))
		if name == "leasehold_certificate_remaining_seconds" { // streams in memory have no certificates
			kind, help, labels = "gauge",
				"How long a certificate lasts that this replica cannot do without; negative: it has ended.",
				[]string{"certificate"}
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", name, kind, strings.Join(labels, ", "), help)
	}
	if *update {
		if err := os.WriteFile(reference, []byte(head+table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != head+table.String() {
		t.Errorf("%s is not what a replica tells: go test ./coordinator/web -run Documented -update\n%s", reference,
			table.String())
	}
}

// Alerts and dashboard ask for nothing that there is not, and Prometheus can read what they ask.
func TestAlertsAndDashboardNameMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	told := everything(t)
	told.kind["leasehold_certificate_remaining_seconds"] = "gauge"
	var expressions []string
	alerts, err := os.ReadFile("../../docs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(alerts)) {
		if expr, ok := strings.CutPrefix(strings.TrimSpace(line), "expr: "); ok {
			expressions = append(expressions, expr)
		}
	}
	if n := strings.Count(string(alerts), "- alert:"); n < 8 || n != len(expressions) {
		t.Errorf("%d alerts with %d expressions", n, len(expressions))
	}
	text, err := os.ReadFile("../../docs/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	rules, panels := "groups:\n- name: dashboard\n  rules:\n", map[int]bool{}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 || panels[p.ID] {
			t.Errorf("panel %d, %q, shows nothing or has another one's ID", p.ID, p.Title)
		}
		panels[p.ID] = true
		for _, target := range p.Targets {
			expressions = append(expressions, target.Expr)
			rules += fmt.Sprintf("  - record: panel:%d\n    expr: %q\n", len(expressions), target.Expr)
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	// Grafana sends expressions as they are: Prometheus' own parser has to read them.
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool (scripts/test-needs.sh installs it): %v\n%s", err, out)
	}
	for _, expr := range expressions {
		names := regexp.MustCompile(`leasehold_[a-z_]+`).FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%s: names no metric", expr)
		}
		for _, name := range names {
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if b, ok := strings.CutSuffix(name, suffix); ok && told.kind[b] == "histogram" {
					base = b
				}
			}
			if told.kind[base] == "" {
				t.Errorf("%s: there is no metric %s", expr, name)
			}
		}
	}
}

// Readiness follows what it is made of, one line for each.
//
// proves OBS-2
func TestReadiness(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	site, conn, _ := s.start("a")
	ready := func() (int, string) { code, body, _ := site.get("/readyz?verbose"); return code, body }
	eventually(t, "being ready", func() bool { code, _ := ready(); return code == http.StatusOK })
	if _,
		body := ready(); body != "[+]etcd ok\n[+]shard ok\n[+]cache ok\n[+]certificates ok\n[+]agents ok\nreadyz check "+
		"passed\n" {
		t.Errorf("told\n%s", body)
	}
	conn.Faults().Cut()
	eventually(t, "etcd's absence being told", func() bool {
		code, body := ready()
		return code == http.StatusServiceUnavailable && strings.Contains(body, "[-]etcd failed: no answer for ") &&
			strings.Contains(body, "[-]cache failed") && strings.Contains(body, "[+]agents ok")
	})
	if code, body, _ := site.get("/readyz"); code != http.StatusServiceUnavailable || body != "not ready\n" {
		t.Errorf("without verbose: %d %q", code, body)
	}
	if code, body, _ := site.get("/livez"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("alive: %d %q", code, body)
	}
	conn.Faults().Mend()
	eventually(t, "being ready again", func() bool { code, _ := ready(); return code == http.StatusOK })
}

// Certificates make a replica unready when they are of no use, and not before: the authority's end
// is near on all replicas at once.
func TestReadinessByCertificates(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		name string
		cert coordinator.Certificate
		want string
	}{
		{
			"good",
			coordinator.Certificate{From: now.Add(-time.Hour), Ends: now.Add(23 * time.Hour)},
			"[+]certificates ok",
		},
		{
			"ended",
			coordinator.Certificate{From: now.Add(-time.Hour), Ends: now.Add(-time.Second)},
			"[-]certificates failed: agents_server: ended ",
		},
		{
			"near its end",
			coordinator.Certificate{From: now.Add(-23 * time.Hour), Ends: now.Add(time.Hour)},
			"[+]certificates ok",
		},
		{
			"an authority of years, in its last days",
			coordinator.Certificate{From: now.AddDate(-5, 0, 0), Ends: now.AddDate(0, 0, 5)},
			"[+]certificates ok",
		},
		{
			"not yet good",
			coordinator.Certificate{From: now.Add(time.Hour), Ends: now.Add(24 * time.Hour)},
			"[-]certificates failed: agents_server: good only from ",
		},
		{
			"not to be had",
			coordinator.Certificate{Problem: "it cannot be made"},
			"[-]certificates failed: agents_server: it cannot be made",
		},
	} {
		replica := newStill()
		c.cert.Name = "agents_server"
		replica.certificates = []coordinator.Certificate{c.cert}
		s := open(t, web.Config{Listen: loopback}, web.Deps{Replica: replica})
		if _, body, _ := s.get("/readyz?verbose"); !strings.Contains(body, c.want) {
			t.Errorf("%s: want %s\n%s", c.name, c.want, body)
		}
		if c.name == "good" && !strings.Contains(s.scrape().text,
			`leasehold_certificate_remaining_seconds{certificate="agents_server"} 8`) {
			t.Error("its end is no number")
		}
	}
}
