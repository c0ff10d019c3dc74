package upgrade

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/leasehold/leasehold/agent/release"
	"github.com/leasehold/leasehold/provider/durable"
)

const (
	fetchTime  = 5 * time.Minute // per program, over all attempts
	tries      = 3               // of all addresses
	pause      = 5 * time.Second // between two attempts
	answerTime = 20 * time.Second
	maxHeader  = 16 << 10
)

// fileOf returns the name of a program in the directory.
func fileOf(st release.Statement) string { return "leasehold-agent-" + st.SHA256[:16] }

// fetch makes sure that a program is in the directory with the signed size and hash.
func (m *Manager) fetch(ctx context.Context, st release.Statement, path string, addresses []string) error {
	target := m.place.path(fileOf(st))
	if matches(target, st) == nil {
		return nil // an earlier offer downloaded it
	}
	config := m.deps.TLS()
	if config == nil {
		return errors.New("this machine has no certificate authority to authenticate the coordinators with")
	}
	if len(addresses) == 0 {
		return errors.New("no coordinator serves it: run one with --downloads")
	}
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"} // streams use another
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	transport := &http.Transport{
		TLSClientConfig: config, DialContext: m.dial, ResponseHeaderTimeout: answerTime,
		TLSHandshakeTimeout: answerTime, MaxResponseHeaderBytes: maxHeader, DisableKeepAlives: true,
	}
	defer transport.CloseIdleConnections()
	var last error
	for try := range tries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return errors.Join(last, ctx.Err())
			case <-time.After(m.deps.Pause):
			}
		}
		for _, address := range addresses {
			err := m.fetchFrom(ctx, transport, "https://"+address+path, target, st)
			if err == nil {
				return nil
			}
			var local *os.PathError
			if errors.As(err, &local) || ctx.Err() != nil {
				return err // other addresses would give the same
			}
			last = fmt.Errorf("%s: %w", address, err)
		}
	}
	return last
}

func (m *Manager) dial(ctx context.Context, _, address string) (net.Conn, error) {
	return m.deps.Dial(ctx, address)
}

// fetchFrom downloads to a temporary file and renames it once it is complete and synced.
func (m *Manager) fetchFrom(ctx context.Context, t http.RoundTripper, url, target string, st release.Statement) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := t.RoundTrip(req) // redirects are not followed
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", answer.Status)
	}
	if n := answer.ContentLength; n >= 0 && n != st.Size {
		return fmt.Errorf("has a program of %d bytes, and %d were signed", n, st.Size)
	}
	if err := os.MkdirAll(m.place.Dir, 0o700); err != nil {
		return err
	}
	next := target + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o700)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(answer.Body, st.Size+1))
	switch {
	case err != nil:
	case n != st.Size:
		err = fmt.Errorf("sent %d bytes, and %d were signed", n, st.Size)
	case hex.EncodeToString(sum.Sum(nil)) != st.SHA256:
		err = errors.New("serves a program other than the signed one")
	default:
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(next, target)
	}
	if err != nil {
		_ = os.Remove(next) // frees the space on a full disk
		return err
	}
	return durable.SyncDir(m.place.Dir)
}
