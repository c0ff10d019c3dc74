//go:build wrongclock

package main

import (
	"fmt"
	"net"
	"syscall"
	_ "unsafe" // for linkname
)

// The connections of this build come from an address that can be chosen: it puts a function of its
// own where package net keeps connect for its tests. etcd's own feature for that
// (SetMemberLocalAddr) leaves out loopback addresses, and there are no others here.

//go:linkname netConnect net.connectFunc
var netConnect func(fd int, to syscall.Sockaddr) error

// setSource makes all TCP connections of this process come from an address, unless the caller of
// Dial chooses another. It comes before the first connection.
func setSource(ip string) error {
	from := net.ParseIP(ip).To4()
	if from == nil {
		return fmt.Errorf("connect from %q: no IPv4 address", ip)
	}
	source := syscall.SockaddrInet4{Addr: [4]byte(from)}
	netConnect = func(fd int, to syscall.Sockaddr) error {
		kind, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TYPE)
		if err != nil {
			return err
		}
		if _, v4 := to.(*syscall.SockaddrInet4); v4 && kind == syscall.SOCK_STREAM {
			// Of a socket that has an address the kernel refuses another one.
			if err := syscall.Bind(fd, &source); err != nil && err != syscall.EINVAL { //nolint:errorlint // an errno
				return err
			}
		}
		return syscall.Connect(fd, to)
	}
	return nil
}
