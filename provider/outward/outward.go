// Package outward is how coordinators reach the addresses that stand in their own configuration
// (SEC-7): an API that is named there, and nothing that it points to.
package outward

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Dialer refuses link-local addresses, whatever name leads to them: metadata services of clouds are
// there, which hand out the credentials of the coordinator's own machine.
func Dialer() *net.Dialer {
	return &net.Dialer{Timeout: 30 * time.Second, Control: control}
}

func control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if a := to.Addr().Unmap(); a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() {
		return fmt.Errorf("%s is a link-local address: configure another one", a)
	}
	return nil
}

// Stay is a CheckRedirect that follows none: the answer that redirects is the answer. What a
// request carries, as tokens in headers of a cloud's own, is for its address alone.
func Stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
