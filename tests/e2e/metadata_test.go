package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"sync"
	"time"

	"github.com/leasehold/leasehold/tests/harness"
)

// metadata is Amazon's own imitation of EC2's metadata service, amazon-ec2-metadata-mock, in its
// version 2 alone. All machines of this host reach the same one, so the test stands before it and
// lets a notice through to some of them alone: an agent is known by its token.
type metadata struct {
	*httptest.Server
	w       *cluster
	tool    string
	running *program

	mu      sync.Mutex
	service *httputil.ReverseProxy
	doomed  map[string]bool // by token: whether the notice is for its agent
	most    int             // how many agents it is for
}

const (
	metadataNotice = "/latest/meta-data/spot/instance-action"
	metadataToken  = "X-Aws-Ec2-Metadata-Token"
)

// newMetadata starts it, without a notice.
func newMetadata(c *cluster) *metadata {
	c.t.Helper()
	tool, err := harness.Tool("metadatamock", "ec2-metadata-mock")
	if err != nil {
		c.t.Fatal(err)
	}
	m := &metadata{w: c, tool: tool}
	m.run("--mock-delay-sec", "86400")
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		service := m.service
		m.mu.Unlock()
		service.ServeHTTP(w, r)
	}))
	c.t.Cleanup(m.Close)
	return m
}

// run starts the service, in the place of one that ran before. Its tokens are not known any more.
func (m *metadata) run(flags ...string) {
	m.w.t.Helper()
	host, port, err := net.SplitHostPort(addresses.FreeAddress(m.w.t))
	if err != nil {
		m.w.t.Fatal(err)
	}
	if m.running != nil {
		m.running.Kill()
		<-m.running.Ended()
	}
	cmd := exec.Command(m.tool, append([]string{"spot", "--imdsv2", "--hostname", host, "--port", port}, flags...)...)
	cmd.Dir, cmd.Env = m.w.dir, []string{"HOME=" + m.w.dir}
	m.running = m.w.start("metadata service", cmd)
	at := &url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
	m.w.await("the metadata service", func() bool {
		conn, err := net.DialTimeout("tcp", at.Host, time.Second)
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	})
	service := httputil.NewSingleHostReverseProxy(at)
	service.ModifyResponse = m.answered
	m.mu.Lock()
	defer m.mu.Unlock()
	m.service, m.doomed = service, map[string]bool{}
}

// doom has the next agents that ask, so many of them, read a notice that their machine ends in a
// minute. They belong to the instances that run now, if no other is made before they have asked.
func (m *metadata) doom(agents int) {
	m.w.t.Helper()
	m.mu.Lock()
	m.most = agents
	m.mu.Unlock()
	m.run("--time", time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
}

// answered takes a notice away from those agents that it is not for.
func (m *metadata) answered(r *http.Response) error {
	if r.Request.URL.Path != metadataNotice || r.StatusCode != http.StatusOK {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	token := r.Request.Header.Get(metadataToken)
	if _, known := m.doomed[token]; !known {
		m.doomed[token] = len(m.doomed) < m.most
	}
	if m.doomed[token] {
		return nil
	}
	err := r.Body.Close()
	r.StatusCode, r.Status = http.StatusNotFound, ""
	r.Body, r.ContentLength = http.NoBody, 0
	r.Header.Set("Content-Length", "0")
	return err
}
