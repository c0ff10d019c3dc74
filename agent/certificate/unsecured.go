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

// Unsecured proves nothing and trusts everyone. It is for simulated networks.
type Unsecured struct{}

// Run does nothing.
func (Unsecured) Run(context.Context) {}

// Join has nothing to do.
func (Unsecured) Join(context.Context,
	func(context.Context, *protocol.JoinRequest) (*protocol.Certificate, error),
) error {
	return nil
}

// Credentials are none.
func (Unsecured) Credentials(bool) (credentials.TransportCredentials, uint64) {
	return insecure.NewCredentials(), 0
}

// TLS is none: nothing tells a coordinator from others.
func (Unsecured) TLS() *tls.Config { return nil }

// Standing never changes.
func (Unsecured) Standing() Standing { return Standing{Joined: true} }

// Changed never tells.
func (Unsecured) Changed() <-chan struct{} { return nil }

// Renewal never comes.
func (Unsecured) Renewal(time.Time) ([]byte, time.Time) { return nil, time.Time{} }

// Accept does nothing.
func (Unsecured) Accept(*protocol.Certificate) {}

// Now is the machine's time.
func (Unsecured) Now() time.Time { return time.Now() }

// Tell does nothing.
func (Unsecured) Tell(*timestamppb.Timestamp) {}

// Believe does nothing.
func (Unsecured) Believe(*protocol.Trust) {}
