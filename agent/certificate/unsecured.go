package certificate

import (
	"context"
	"crypto/tls"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// Unsecured proves nothing and trusts every peer. It is for simulated networks.
type Unsecured struct{}

// Run does nothing.
func (Unsecured) Run(context.Context) {}

// Join has nothing to do.
func (Unsecured) Join(context.Context,
	func(context.Context, *protocol.JoinRequest) (*protocol.Certificate, error),
) error {
	return nil
}

// Credentials returns insecure transport credentials.
func (Unsecured) Credentials(bool) (credentials.TransportCredentials, uint64) {
	return insecure.NewCredentials(), 0
}

// TLS returns nil, since nothing authenticates a coordinator.
func (Unsecured) TLS() *tls.Config { return nil }

// Status never changes.
func (Unsecured) Status() Status { return Status{Joined: true} }

// Changed never signals.
func (Unsecured) Changed() <-chan struct{} { return nil }

// Renewal never returns a request.
func (Unsecured) Renewal(time.Time) ([]byte, time.Time) { return nil, time.Time{} }

// Accept does nothing.
func (Unsecured) Accept(*protocol.Certificate) {}

// Now returns the machine's time.
func (Unsecured) Now() time.Time { return time.Now() }

// Tell does nothing.
func (Unsecured) Tell(*timestamppb.Timestamp) {}

// SetTrust does nothing.
func (Unsecured) SetTrust(*protocol.Trust) {}
