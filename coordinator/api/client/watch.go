package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/leasehold/leasehold/coordinator/api"
)

// errEnded is the end of a watch: the replica stopped, or was too slow.
var errEnded = errors.New("the watch has ended: open it again")

// maxMessage limits a message of a watch.
const maxMessage = 16 << 20

// WatchStatus calls see with the state of a group, and again whenever it changes, until see or ctx
// ends it. It always returns an error; a new watch begins with the current state.
func (c *Client) WatchStatus(ctx context.Context, group string, see func(api.Group) (more bool)) error {
	return c.watch(ctx, "groups/"+url.PathEscape(group)+"/status?watch=true", func(data []byte) (bool, error) {
		var d api.Group
		err := json.Unmarshal(data, &d)
		return err == nil && see(d), err
	})
}

// WatchEvents calls see with the last entries of the journal, the oldest first, and then with each
// new one.
func (c *Client) WatchEvents(ctx context.Context, wanted url.Values, see func(api.Event) (more bool)) error {
	q := url.Values{"watch": {"true"}}
	for name, values := range wanted {
		q[name] = values
	}
	return c.watch(ctx, "events?"+q.Encode(), func(data []byte) (bool, error) {
		var e api.Event
		err := json.Unmarshal(data, &e)
		return err == nil && see(e), err
	})
}

// ErrSeen is the error of a watch that see has ended.
var ErrSeen = errors.New("seen")

func (c *Client) watch(ctx context.Context, path string, see func([]byte) (bool, error)) error {
	r, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	defer func() { _ = resp.Body.Close() }() // a stream is not read to its end
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return problemOf(resp, text)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxMessage)
	name := ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "event":
			name = value
		case field == "data" && (name == "state" || name == "event"):
			more, err := see([]byte(value))
			if err != nil {
				return fmt.Errorf("watch %s: %w", path, err)
			}
			if !more {
				return ErrSeen
			}
		case field == "data" && name == "gone":
			p := &api.Problem{}
			if json.Unmarshal([]byte(value), p) == nil {
				return p
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errEnded, lines.Err())
}
