package notice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxAnswer bounds how much of an answer or a file is read.
const maxAnswer = 64 << 10

// newClient returns a client for metadata services, which are reached directly, without a proxy.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			MaxIdleConns: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxAnswer, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// metadata is a cloud's metadata service.
type metadata struct {
	client *http.Client
	base   string
}

func (metadata) slowAtFirst() bool { return false }

// answer is a service's response.
type answer struct {
	status int
	header http.Header
	body   string
	now    time.Time // by the service's clock, else by ours
}

// ask sends a request without a body. Every status counts as an answer.
func (m metadata) ask(ctx context.Context, method, path string, header map[string]string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(m.base, "/")+path, nil)
	if err != nil {
		return answer{}, err
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := m.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := readBounded(resp.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: strings.TrimSpace(string(body)), now: time.Now()}
	if t, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		a.now = t
	}
	return a, nil
}

// get is ask for a resource that must exist.
func (m metadata) get(ctx context.Context, path string, header map[string]string) (answer, error) {
	a, err := m.ask(ctx, http.MethodGet, path, header)
	if err == nil && a.status != http.StatusOK {
		err = unexpected(http.MethodGet, path, a.status)
	}
	return a, err
}

func unexpected(method, path string, status int) error {
	return fmt.Errorf("%s %s: answered %d %s", method, path, status, http.StatusText(status))
}

func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = errors.New("more than 64 KiB: that is not a notice")
	}
	return data, err
}
