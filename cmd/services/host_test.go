package services

import (
	"fmt"
	"net"
	"testing"
)

// Of several ports that a coordinator listens on, the error names the one that is taken, even if it
// is free again when the error is made.
func TestWhichPortIsTaken(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := l.Addr().String()
	_, err = new(net.ListenConfig).Listen(t.Context(), "tcp", taken)
	_ = l.Close()
	err = fmt.Errorf("serve: %w", err)
	if !samePort(err, taken) {
		t.Errorf("%s is not named by %v", taken, err)
	}
	if samePort(err, "127.0.0.1:1") {
		t.Errorf("another port is named by %v", err)
	}
}
