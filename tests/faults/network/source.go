package network

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
)

// Name sets which party connects from an address.
func (n *Network) Name(ip, party string) error {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return fmt.Errorf("name %s: %w", party, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	address = address.Unmap()
	if other, taken := n.names[address]; taken && other != party {
		return fmt.Errorf("name %s: %s is the address of %s", party, ip, other)
	}
	n.names[address], n.sources[party] = party, address
	return nil
}

// Source returns the address that a party connects from: the one it was named with, or one of its
// own below 127.64.0.0, the same each time.
func (n *Network) Source(party string) netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		if address, known := n.sources[party]; known {
			return address
		}
		n.given++
		address := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 127<<24|64<<16+n.given)))
		if _, taken := n.names[address]; !taken {
			n.names[address], n.sources[party] = party, address
		}
	}
}

// partyAt returns who connects from there; one without a name is called by its address.
func (n *Network) partyAt(remote net.Addr) string {
	at, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return remote.String()
	}
	address := at.Addr().Unmap()
	n.mu.Lock()
	defer n.mu.Unlock()
	if party, known := n.names[address]; known {
		return party
	}
	return address.String()
}
