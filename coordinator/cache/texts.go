package cache

import "github.com/leasehold/leasehold/store"

// The records of a shard repeat the same strings a hundred thousand times: phases, hashes, names of
// groups, replicas and checks. Each is kept once, which saves memory, and much work for the garbage
// collector.

// texts holds strings that were read.
type texts map[string]string

// Limits on what is kept: strings come and go as long as a process lives.
const (
	maxTexts     = 10_000
	longestShare = 200 // bytes: longer strings are seldom repeated
)

// share replaces a text by an equal one that is already in memory, if there is one.
func share[T ~string](known *texts, word *T) {
	if len(*word) == 0 || len(*word) > longestShare {
		return
	}
	if one, ok := (*known)[string(*word)]; ok {
		*word = T(one)
		return
	}
	if *known == nil || len(*known) >= maxTexts {
		*known = texts{}
	}
	(*known)[string(*word)] = string(*word)
}

// use replaces a text by another one if they are equal.
func use(word *string, other string) {
	if *word == other {
		*word = other
	}
}

func (c *Content) shareInstance(i *store.Instance) {
	use(&i.Boot, c.Alive[i.ID].Record.BootID)
	share(&c.texts, &i.Group)
	share(&c.texts, &i.Phase)
	share(&c.texts, &i.Template)
	share(&c.texts, &i.Zone)
	share(&c.texts, &i.Config)
	share(&c.texts, &i.Last.Rule)
	share(&c.texts, &i.Last.What)
	share(&c.texts, &i.Last.Why)
}

func (c *Content) shareAlive(instance string, a *store.Alive) {
	use(&a.Instance, instance)
	use(&a.BootID, c.Alive[instance].Record.BootID)
	share(&c.texts, &a.Replica)
	share(&c.texts, &a.State)
	share(&c.texts, &a.Agent)
}

func (c *Content) shareReport(instance string, r *store.Report) {
	use(&r.Instance, instance)
	use(&r.BootID, c.Alive[instance].Record.BootID)
	share(&c.texts, &r.Replica)
	share(&c.texts, &r.Agent)
	share(&c.texts, &r.Config)
	share(&c.texts, &r.Trust)
	for i := range r.Checks {
		share(&c.texts, &r.Checks[i].Name)
		share(&c.texts, &r.Checks[i].Kind)
	}
	if r.Certificate != nil {
		share(&c.texts, &r.Certificate.Issuer)
	}
}
