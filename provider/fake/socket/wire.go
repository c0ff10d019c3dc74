package socket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Call is a call of the provider's contract, as it is sent over the socket.
type Call struct {
	Replica               string        // the replica that calls
	Left                  time.Duration // the caller's time limit; 0: none
	Shard, Instance, Boot string
	Timeout               time.Duration
	Request               Request
}

// Request is a provider.CreateRequest as replicas of this release and of the previous one encode
// it: without settings, which machines have none of here.
type Request struct {
	Template  Template
	Zone      string
	Bootstrap provider.Bootstrap
}

// Template is the part of a provider.Template that every release encodes in the same way.
type Template struct {
	InstanceType string
	Zones        []string
}

func spelled(r provider.CreateRequest) Request {
	return Request{
		Template: Template{InstanceType: strings.Join(r.Template.InstanceTypes, ","), Zones: r.Template.Zones},
		Zone:     r.Zone, Bootstrap: r.Bootstrap,
	}
}

func (r Request) contract() provider.CreateRequest {
	return provider.CreateRequest{
		Template: provider.Template{InstanceTypes: strings.Split(r.Template.InstanceType, ","), Zones: r.Template.Zones},
		Zone:     r.Zone, Bootstrap: r.Bootstrap,
	}
}

// Answer is the result of a call.
type Answer struct {
	Machines []provider.Machine
	Err      string
}

// failures are the errors that a coordinator branches on; they keep their identity over the socket.
// Both sides keep the time of a call, and either may notice its end first.
var failures = []error{
	provider.ErrCapacity, provider.ErrInvalid, provider.ErrNotFound, provider.ErrDeleted, context.DeadlineExceeded,
}

func spell(err error) string {
	for i, known := range failures {
		if errors.Is(err, known) {
			return fmt.Sprintf("%d %s", i, err)
		}
	}
	if err != nil {
		return "- " + err.Error()
	}
	return ""
}

// Failure is the error of the call.
func (a Answer) Failure() error {
	if a.Err == "" {
		return nil
	}
	for i, known := range failures {
		if rest, ok := strings.CutPrefix(a.Err, fmt.Sprintf("%d ", i)); ok {
			return fmt.Errorf("%w (%s)", known, rest)
		}
	}
	return errors.New(strings.TrimPrefix(a.Err, "- "))
}
