package haproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/clip"
	"github.com/leasehold/leasehold/provider/egress"
)

// target is one HAProxy process.
type target struct {
	name             string
	network, address string
	timeout          time.Duration
	changing         chan struct{} // holds a token while a call changes the process
}

const (
	maxAnswer = 32 << 20 // bytes: about 30,000 servers
	maxSaid   = 300      // of an answer in an error
)

// ask sends one line and returns the whole answer. HAProxy closes the connection after it.
func (t *target) ask(ctx context.Context, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	answer, err := t.exchange(ctx, line)
	if err != nil {
		if ended := ctx.Err(); ended != nil {
			return "", fmt.Errorf("HAProxy did not answer %q within %s: %w", firstWords(line), t.timeout, ended)
		}
		return "", fmt.Errorf("ask HAProxy: %w", err)
	}
	switch said := strings.TrimSpace(answer); {
	case strings.HasPrefix(said, "Permission denied"):
		return "", balancer.Errorf(provider.Credentials, "socket "+t.name,
			"HAProxy refuses %q: give the socket \"level admin\"", firstWords(line))
	case !strings.HasSuffix(answer, "\n"):
		return "", errors.New("HAProxy's answer was cut off")
	}
	return answer, nil
}

func (t *target) exchange(ctx context.Context, line string) (answer string, err error) {
	dialer := &net.Dialer{}
	if t.network != "unix" {
		dialer = egress.Dialer()
	}
	conn, err := dialer.DialContext(ctx, t.network, t.address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// The end of the context closes the connection.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(conn, maxAnswer+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxAnswer:
		return "", fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return string(text), ctx.Err()
}

// take waits until no other call of this process changes the target.
func (t *target) take(ctx context.Context) (release func(), err error) {
	select {
	case t.changing <- struct{}{}:
		return func() { <-t.changing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// firstWords returns the words that identify a command.
func firstWords(line string) string {
	words := strings.Fields(line)
	return strings.Join(words[:min(3, len(words))], " ")
}

// quoted shortens text of HAProxy's to one line of bounded length.
func quoted(s string) string {
	return clip.Marked(strings.Join(strings.Fields(s), " "), maxSaid)
}
