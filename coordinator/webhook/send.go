package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider/clip"
)

// failure is a failed delivery. It contains no URL, which may be a secret.
type failure struct {
	why   string
	final bool          // a retry is useless: the receiver calls the event malformed
	after time.Duration // earliest retry; 0: as usual
}

func (f *failure) Error() string { return f.why }

// maxWhy bounds what is recorded of a failure, in bytes. The receiver may have written it, and
// etcd would not take a record that holds megabytes of it.
const maxWhy = 300

func newFailure(why string) *failure {
	return &failure{why: clip.Marked(reason.OneLine(why), maxWhy)}
}

// longestAfter bounds the delay that a receiver may ask for.
const longestAfter = 5 * time.Minute

// Send posts an event once.
func (h *Hook) Send(ctx context.Context, e *Event) error {
	address, err := h.address()
	if err != nil {
		return newFailure(err.Error())
	}
	keys, err := h.keys()
	if err != nil {
		return newFailure(err.Error())
	}
	now := time.Now()
	body := h.form.encode(e, now)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return newFailure("the URL cannot be used")
	}
	r.Header.Set("Content-Type", h.form.contentType)
	r.Header.Set("User-Agent", "leasehold")
	sign(r.Header, keys, e.ID, now, body)
	answer, err := h.client.Do(r)
	if err != nil {
		var with *url.Error
		if errors.As(err, &with) { // its text contains the URL
			err = with.Err
		}
		return newFailure(err.Error())
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be reused
	if answer.StatusCode/100 == 2 {
		return nil
	}
	f := newFailure("it answered " + answer.Status)
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		f.final = true
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if s, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && s > 0 {
			f.after = min(time.Duration(s)*time.Second, longestAfter)
		}
	}
	return f
}

// sign sets the headers of Standard Webhooks (https://www.standardwebhooks.com): any of its
// libraries verifies them. With several keys there are several signatures, so that keys can be
// changed one side after the other.
func sign(header http.Header, keys [][]byte, id string, now time.Time, body []byte) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", stamp)
	signatures := make([]string, 0, len(keys))
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	if len(signatures) > 0 {
		header.Set("Webhook-Signature", strings.Join(signatures, " "))
	}
}

// minKey is the minimum length of a signing key.
const minKey = 24

// parseKey reads a key: base64 after whsec_, as Standard Webhooks spells it.
func parseKey(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < minKey {
		return nil, fmt.Errorf("a key must be whsec_ and at least %d bytes in base64; make one: "+
			`echo "whsec_$(head -c 32 /dev/urandom | base64)"`, minKey)
	}
	return key, nil
}
