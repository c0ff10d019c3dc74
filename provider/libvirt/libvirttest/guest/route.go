package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// route is the kernel's struct rtentry.
type route struct {
	_                            uint64
	destination, gateway, within unix.RawSockaddrInet4
	flags                        uint16
	_                            uint64
	_                            [4]uint16
	_                            int16
	_                            *byte
	_, _                         uint64
	_                            uint16
}

// Of a route, by the kernel's names RTF_UP and RTF_GATEWAY.
const routeIsUp, routeHasGateway = 1, 2

// routeAll sends what is for other networks to a gateway.
func routeAll(gateway [4]byte) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	r := route{flags: routeIsUp | routeHasGateway}
	r.destination.Family, r.within.Family = unix.AF_INET, unix.AF_INET
	r.gateway = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: gateway}
	//nolint:gosec // the kernel takes the struct by its address
	if _, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCADDRT, uintptr(unsafe.Pointer(&r))); no != 0 {
		return fmt.Errorf("add a route: %w", no)
	}
	return nil
}
