package lxd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/leasehold/leasehold/provider"
)

// prefix begins the names of all containers.
const prefix = "ls-"

// LXD's names are host names: letters, digits and '-', neither first a digit nor last a '-'.
const maxName = 63

// nameOf is the container of an instance. An ID that is no part of a host's name, or is too long,
// is shortened and told apart by a hash.
func nameOf(instance string) string {
	fits := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' }
	name := prefix + instance
	if len(name) <= maxName && !strings.HasSuffix(name, "-") &&
		!strings.ContainsFunc(instance, func(r rune) bool { return !fits(r) }) {
		return name
	}
	plain := strings.Map(func(r rune) rune {
		if fits(r) {
			return r
		}
		return '-'
	}, strings.ToLower(instance))
	const room = maxName - len(prefix) - 1 - hashLength
	return prefix + strings.Trim(plain[:min(len(plain), room)], "-") + "-" + hashOf([]byte(instance))
}

const hashLength = 12

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:hashLength]
}

// templateHash marks what a container was made from.
func templateHash(t provider.Template) string {
	data, err := json.Marshal(t)
	if err != nil {
		return "" // for people alone
	}
	return hashOf(data)
}
