//go:build nightly

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// prometheus is a running Prometheus.
type prometheus struct {
	t   *testing.T
	url string
}

// ask asks its API, and reads the data of the answer.
func (p *prometheus) ask(path string, query url.Values, into any) error {
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/api/v1/"+path+"?"+query.Encode(),
		http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", answer.Status, answer.Error)
	}
	return nil
}

// series is how many series an expression has now.
func (p *prometheus) series(expression string) (int, error) {
	var data struct{ Result []json.RawMessage }
	err := p.ask("query", url.Values{"query": {expression}}, &data)
	return len(data.Result), err
}

// alerts are the alerts that are pending or fire, with their states.
func (p *prometheus) alerts() map[string]string {
	var data struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	all := map[string]string{}
	if err := p.ask("alerts", nil, &data); err != nil {
		all["unreachable"] = err.Error()
	}
	for _, a := range data.Alerts {
		all[a.Labels["alertname"]] = a.State
	}
	return all
}

// A real Prometheus loads docs/alerts.yaml and gets an answer to every expression of
// docs/dashboard.json from real coordinators. While all is well no alert fires. When the
// coordinators are killed LeaseholdNoLeader fires, and it is silent when they are back.
//
// proves OBS-2
func TestPrometheusFiresAnAlert(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	pages := map[string]string{"a": addresses.FreeAddress(t), "b": addresses.FreeAddress(t)}
	start := func() {
		for id, http := range pages {
			c.options = []string{"--http", http}
			c.startReplica(id)
		}
		c.options = nil
		c.await("a leader", func() bool { return c.h.leader() != "" })
	}
	start()
	c.apply("web", 3)

	rules, err := filepath.Abs("../../docs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	listen := addresses.FreeAddress(t)
	config := c.file("prometheus.yml", fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: leasehold, static_configs: [{targets: [%q, %q]}]}]
`, rules, pages["a"], pages["b"]))
	if said, err := exec.CommandContext(t.Context(), "promtool", "check", "config", config).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	c.start("prometheus", c.command("/usr/bin/prometheus", "--config.file="+config, "--web.listen-address="+listen,
		"--storage.tsdb.path="+filepath.Join(c.dir, "prometheus"), "--log.level=warn"))
	p := &prometheus{t, "http://" + listen}
	c.await("both coordinators scraped", func() bool {
		n, err := p.series("leasehold_leader")
		return err == nil && n == 2
	})
	c.await("no alert pending", func() bool { return len(p.alerts()) == 0 }) // one may be from before the first scrape
	c.throughout(20*time.Second, "no alert while all is well", func() bool {
		for name, state := range p.alerts() {
			if state != "pending" { // one missed scrape is no fault
				t.Errorf("%s is %s", name, state)
			}
		}
		return !t.Failed()
	})
	c.dashboard(p)

	for id, r := range c.replicas {
		if err := syscall.Kill(r.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		c.waitEnd(r)
		delete(c.replicas, id)
	}
	took := c.await("LeaseholdNoLeader fires", func() bool { return p.alerts()["LeaseholdNoLeader"] == "firing" })
	t.Logf("it fired after %s", took)
	start()
	took = c.await("it is silent again", func() bool { return p.alerts()["LeaseholdNoLeader"] == "" })
	t.Logf("silent after %s", took)
}

// dashboard has every expression of the dashboard answered. A histogram or a counter of what has
// not happened has no series yet.
func (c *cluster) dashboard(p *prometheus) {
	c.t.Helper()
	text, err := os.ReadFile("../../docs/dashboard.json")
	if err != nil {
		c.t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		c.t.Fatal(err)
	}
	asked, answered := 0, 0
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			asked++
			n, err := p.series(target.Expr)
			if err != nil {
				c.t.Errorf("%s: %s: %v", panel.Title, target.Expr, err)
			}
			if n > 0 {
				answered++
			}
			gauge := !strings.Contains(target.Expr, "rate(") && !strings.Contains(target.Expr, "_verdicts")
			if gauge && n == 0 && !strings.Contains(target.Expr, "certificate") {
				c.t.Errorf("%s: %s has no series", panel.Title, target.Expr)
			}
		}
	}
	if asked == 0 || answered < asked/2 {
		c.t.Errorf("%d of %d expressions have series", answered, asked)
	}
}
