package libvirt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	prefix   = "ls-" // begins the names of all domains and volumes
	maxName  = 100
	hashSize = 10
)

// key names a machine.
type key struct{ shard, instance string }

// prefixOf begins the names of a shard's domains and volumes.
func prefixOf(shard string) string { return prefix + hashOf(shard) + "-" }

// nameOf is the domain of an instance. No two shards have one of the same name. An ID that is no
// part of a file's name, or is too long, is shortened and told apart by a hash.
func (k key) nameOf() string {
	fits := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' }
	name := prefixOf(k.shard) + k.instance
	if len(name) <= maxName && !strings.ContainsFunc(k.instance, func(r rune) bool { return !fits(r) }) {
		return name
	}
	plain := strings.Map(func(r rune) rune {
		if fits(r) {
			return r
		}
		return '-'
	}, strings.ToLower(k.instance))
	room := maxName - len(prefixOf(k.shard)) - 1 - hashSize
	return prefixOf(k.shard) + plain[:min(len(plain), room)] + "-" + hashOf(k.instance)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:hashSize]
}

// macOf is the address of a domain's interface: locally administered, with 40 bits of a hash.
func macOf(name string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", name, i))
	return fmt.Sprintf("52:%02x:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3], sum[4])
}
