package gateway

import (
	"crypto/x509"
	"testing"
	"time"
)

// The timer of a certificate runs on the monotonic clock. Where the wall clock was set back
// meanwhile, it is set again.
//
// proves SEC-3
func TestCertificateOutlivesItsTimer(t *testing.T) {
	s := &session{}
	s.proof.chain = []*x509.Certificate{{NotAfter: time.Now().Add(time.Hour)}}
	s.proof.timer = time.AfterFunc(time.Hour, func() {})
	s.proof.timer.Stop() // it ran out
	if err := s.certificateEnded(); err != nil {
		t.Fatal(err)
	}
	if !s.proof.timer.Stop() {
		t.Error("nothing ends the stream when the certificate does")
	}
}
