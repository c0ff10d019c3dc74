//go:build wrongclock

package main

import (
	"fmt"
	"net"
	_ "unsafe" // for linkname
)

// The standard library of this build has connections come from an address that can be chosen: the
// tests put another net/dial.go in its place. etcd's own feature for that (SetMemberLocalAddr)
// leaves out loopback addresses, and there are no others here.

//go:linkname setDialSource net.setDialSource
func setDialSource(ip net.IP)

// setSource makes all connections of this process come from an address, unless the caller of Dial
// chooses another.
func setSource(ip string) error {
	from := net.ParseIP(ip)
	if from == nil {
		return fmt.Errorf("connect from %q: no IP address", ip)
	}
	setDialSource(from)
	return nil
}
