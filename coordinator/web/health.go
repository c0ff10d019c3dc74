package web

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator"
)

// oldCache is the age from which the cache is too old to rely on: SAFE-3.
const oldCache = 3 * time.Second

func certificateOf(name string, c *x509.Certificate) coordinator.Certificate {
	return coordinator.Certificate{Name: name, From: c.NotBefore, Ends: c.NotAfter}
}

// trouble returns why a certificate cannot be used now, or "". A certificate that expires soon is
// not reported: agents are served until then, and an authority expires on all replicas at once, so
// a load balancer would take all of them out of service. Metrics, alerts and status show the time
// left.
func trouble(c coordinator.Certificate, now time.Time) string {
	switch {
	case c.Problem != "":
		return c.Name + ": " + c.Problem
	case now.Before(c.From):
		return fmt.Sprintf("%s: good only from %s on", c.Name, c.From.UTC().Format(time.RFC3339))
	case !now.Before(c.Ends):
		return fmt.Sprintf("%s: ended %s", c.Name, c.Ends.UTC().Format(time.RFC3339))
	}
	return ""
}

// health answers whether the replica is alive and ready.
type health struct {
	replica      Replica
	certificates func() []coordinator.Certificate
}

// check is a condition of readiness. It returns what is wrong, or "".
type check struct {
	name string
	look func(now time.Time) string
}

// checks lists all conditions. Leadership is not among them: replicas that do not lead serve
// agents, too.
func (h *health) checks() []check {
	return []check{
		{"etcd", func(now time.Time) string {
			return since(h.replica.Status().EtcdHeard, now, "no answer")
		}},
		{"shard", func(time.Time) string { return h.replica.Status().Waits }},
		{"cache", func(now time.Time) string {
			heard, interrupted := h.replica.Cache().Heard()
			if interrupted != nil {
				return "the watch is interrupted"
			}
			return since(heard, now, "nothing heard")
		}},
		{"certificates", func(now time.Time) string {
			var troubles []string
			for _, c := range h.certificates() {
				if wrong := trouble(c, now); wrong != "" {
					troubles = append(troubles, wrong)
				}
			}
			return strings.Join(troubles, "; ")
		}},
		{"agents", func(time.Time) string {
			if h.replica.Status().Serving == "" {
				return "they are not served"
			}
			return ""
		}},
	}
}

func since(at, now time.Time, what string) string {
	switch age := now.Sub(at); {
	case at.IsZero():
		return what + " yet"
	case age > oldCache:
		return fmt.Sprintf("%s for %s", what, age.Round(100*time.Millisecond))
	}
	return ""
}

// live answers that the process is alive.
func (h *health) live(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") }

// ready answers whether agents can be served here, in the format of Kubernetes.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	var list strings.Builder
	code, now := http.StatusOK, time.Now()
	for _, c := range h.checks() {
		if problem := c.look(now); problem != "" {
			code = http.StatusServiceUnavailable
			fmt.Fprintf(&list, "[-]%s failed: %s\n", c.name, problem)
		} else {
			fmt.Fprintf(&list, "[+]%s ok\n", c.name)
		}
	}
	verbose, ok := "readyz check passed", "ok"
	if code != http.StatusOK {
		verbose, ok = "readyz check failed", "not ready"
	}
	if r.URL.Query().Has("verbose") {
		say(w, code, list.String()+verbose)
		return
	}
	say(w, code, ok)
}
