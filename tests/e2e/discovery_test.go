package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// A real Prometheus finds the instances of a group at a replica, scrapes them, and follows when one is
// replaced.
//
// proves LB-4
func TestPrometheusFindsTheInstances(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	web, own := l.address(), l.address()
	l.startDev("--listen", l.address(), "--http", web)
	l.follow()
	l.await("the group", func() bool { return l.h.complete("demo", 3) })

	config := filepath.Join(l.dir, "prometheus.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
scrape_configs:
- job_name: demo
  scrape_interval: 1s
  http_sd_configs: [{url: "http://%s/discovery/prometheus?group=demo", refresh_interval: 1s}]
  relabel_configs: [{source_labels: [__meta_leasehold_instance], target_label: instance}]
`, web), 0o600); err != nil {
		t.Fatal(err)
	}
	l.start("prometheus", l.command("prometheus", "--config.file", config, "--web.listen-address", own,
		"--storage.tsdb.path", filepath.Join(l.dir, "prometheus")))
	// scraped are the instances that Prometheus scrapes with success.
	scraped := func() []string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+own+"/api/v1/targets?state=active",
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil // it is about to listen
		}
		defer answer.Body.Close()
		var is struct {
			Data struct {
				ActiveTargets []struct {
					Labels map[string]string
					Health string
				}
			}
		}
		if json.NewDecoder(answer.Body).Decode(&is) != nil {
			return nil
		}
		var up []string
		for _, target := range is.Data.ActiveTargets {
			if target.Health == "up" {
				up = append(up, target.Labels["instance"])
			}
		}
		slices.Sort(up)
		return up
	}
	all := func() bool {
		wanted := l.h.wanted("demo")
		slices.Sort(wanted)
		return len(wanted) == 3 && slices.Equal(scraped(), wanted)
	}
	l.await("all instances to be scraped", all)
	victim := l.h.wanted("demo")[0]
	l.signalAgent(victim, syscall.SIGKILL)
	l.await("the one in its place to be scraped instead", func() bool {
		return !slices.Contains(l.h.wanted("demo"), victim) && all()
	})
}
