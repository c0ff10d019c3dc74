package lxd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold/leasehold/provider/clip"
	"github.com/leasehold/leasehold/provider/egress"
)

// client speaks LXD's REST API. Each of its methods is one request, and, where LXD answers with an
// operation, the wait for its end.
type client struct {
	http    *http.Client
	base    string // scheme and host
	where   string // for errors
	project string
}

// maxAnswer is far more than the largest honest answer: a List of ten thousand containers.
const maxAnswer = 256 << 20

func socketClient(path, project string) *client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &client{
		http: &http.Client{Transport: transport(dial, nil), CheckRedirect: egress.Stay}, base: "http://lxd",
		where: path, project: project,
	}
}

func httpsClient(host string, config *tls.Config, project string) *client {
	dialer := egress.Dialer()
	dialer.Timeout = 10 * time.Second
	return &client{
		http: &http.Client{Transport: transport(dialer.DialContext, config), CheckRedirect: egress.Stay},
		base: "https://" + host, where: host, project: project,
	}
}

func transport(dial func(context.Context, string, string) (net.Conn, error), config *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext: dial, TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
	}
}

func firstCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no certificate in PEM form")
	}
	return x509.ParseCertificate(block.Bytes)
}

// envelope is around everything that LXD answers, but files.
type envelope struct {
	Type      string          `json:"type"`
	Operation string          `json:"operation"`
	Code      int             `json:"error_code"`
	Error     string          `json:"error"`
	Metadata  json.RawMessage `json:"metadata"`
}

// operation is what LXD does in the background.
type operation struct {
	ID          string              `json:"id"`
	Description string              `json:"description"`
	Status      string              `json:"status"`
	Code        int                 `json:"status_code"`
	Resources   map[string][]string `json:"resources"`
	Err         string              `json:"err"`
	ErrCode     int                 `json:"err_code"` // 0 in LXD 5.0
}

// request is one request.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	body         any    // sent as JSON
	raw          []byte // sent as it is
}

// call sends a request, waits for the operation that it may have begun, and reads what the answer
// holds. The ETag names the state that was read.
func (c *client) call(ctx context.Context, r request, into any) (etag string, err error) {
	header, data, err := c.send(ctx, r)
	if err != nil {
		return "", err
	}
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return "", c.garbled(r, err)
	}
	switch e.Type {
	case "sync":
	case "async":
		return "", c.await(ctx, e.Operation)
	default:
		return "", c.garbled(r, fmt.Errorf("its type is %q", e.Type))
	}
	if into == nil {
		return "", nil
	}
	if err := json.Unmarshal(e.Metadata, into); err != nil {
		return "", c.garbled(r, err)
	}
	return header.Get("ETag"), nil
}

func (c *client) garbled(r request, err error) error {
	return fmt.Errorf("read the answer of LXD at %s to %s %s: %w", c.where, r.method, r.path, err)
}

// await returns when an operation has ended: with its error, if it has failed.
func (c *client) await(ctx context.Context, path string) error {
	var op operation
	if _, err := c.call(ctx, request{method: http.MethodGet, path: path + "/wait"}, &op); err != nil {
		var f *failure
		if errors.As(err, &f) && f.code == http.StatusNotFound {
			// LXD forgets an operation seconds after its end.
			return errors.New("LXD does not know the operation any more: it may have succeeded")
		}
		return err
	}
	switch {
	case op.Err != "" || op.Code >= http.StatusBadRequest:
		return &failure{code: op.ErrCode, text: op.Err}
	case op.Code != http.StatusOK:
		return fmt.Errorf("LXD does not say that the operation has ended: its status is %q (%d)", op.Status, op.Code)
	}
	return nil
}

// send sends a request and returns the whole answer, or LXD's error as a failure.
func (c *client) send(ctx context.Context, r request) (http.Header, []byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	query := url.Values{}
	for k, v := range r.query {
		query[k] = v
	}
	if query.Get("project") == "" {
		query.Set("project", c.project)
	}
	body, kind := r.raw, "application/octet-stream"
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, nil, err
		}
		kind = "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, nil, c.unreachable(ctx, err)
	}
	if len(data) > maxAnswer {
		return nil, nil, c.garbled(r, errors.New("it is too long"))
	}
	if resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized {
		c.http.CloseIdleConnections() // the next request presents the certificate that the files hold by then
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, nil, failureOf(resp.StatusCode, data)
	}
	return resp.Header, data, nil
}

// failureOf is the error in an answer. One that is not LXD's comes from a program between us and
// LXD: it says nothing of a container, whatever its status.
func failureOf(status int, data []byte) error {
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil || e.Type != "error" {
		const some = 200
		return fmt.Errorf("an answer that is not LXD's: %d %s: %s", status, http.StatusText(status),
			clip.Marked(string(data), some))
	}
	return &failure{code: status, text: cmp.Or(e.Error, http.StatusText(status))}
}
