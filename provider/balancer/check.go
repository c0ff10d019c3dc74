package balancer

import (
	"errors"
	"net"
	"net/netip"
	"regexp"

	"github.com/leasehold/leasehold/provider"
)

var (
	nameForm     = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)
	shardForm    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	instanceForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
)

// SplitAddress splits the address that a provider reports for a machine, with or without a port.
func SplitAddress(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address, ""
	}
	return host, port
}

// IsName reports whether a balancer may have that name.
func IsName(name string) bool { return nameForm.MatchString(name) }

// Check returns what is wrong with a member: adapters write its parts into commands, names and
// files.
func Check(shard string, m Member) error {
	switch {
	case !shardForm.MatchString(shard):
		return invalid("shard", "%q is not a shard ID", shard)
	case !instanceForm.MatchString(m.Instance):
		return invalid("instance", "%q is not an instance ID", m.Instance)
	case m.Port < 1 || m.Port > 65535:
		return invalid("port", "%d: must be 1 to 65535", m.Port)
	case m.Weight < 0 || m.Weight > MaxWeight:
		return invalid("weight", "%d: must be 1 to %d", m.Weight, MaxWeight)
	}
	if a, err := netip.ParseAddr(m.Address); err != nil || a.Zone() != "" || a.String() != m.Address || a.IsUnspecified() {
		return invalid("address", "%q: must be an IP address, as it is usually written", m.Address)
	}
	return nil
}

// CheckUse returns what is wrong with a group's use of a balancer with these capabilities. The
// adapter checks settings against its own schema.
func CheckUse(c Capabilities, u Use) error {
	var errs []error
	switch {
	case u.Weight < 0 || u.Weight > MaxWeight:
		errs = append(errs, invalid("weight", "%d: must be 1 to %d", u.Weight, MaxWeight))
	case u.Weight != 0 && !c.Weights:
		errs = append(errs, invalid("weight", "%d: this balancer knows no weights: leave it out", u.Weight))
	}
	if len(u.Settings) > 0 && c.Settings == nil {
		errs = append(errs, invalid("settings", "this balancer has none: leave them out"))
	}
	return errors.Join(errs...)
}

func invalid(scope, format string, args ...any) error {
	return Errorf(provider.Invalid, scope, format, args...)
}

// CheckShard returns what is wrong with a shard's ID.
func CheckShard(shard string) error {
	if !shardForm.MatchString(shard) {
		return invalid("shard", "%q is not a shard ID", shard)
	}
	return nil
}
