package cache

import (
	"reflect"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// NewContent returns the content of a shard without keys.
func NewContent() *Content {
	return &Content{
		Leaders:    map[string]store.KV{},
		Replicas:   map[string]store.Versioned[store.Replica]{},
		Groups:     map[string]store.KV{},
		Static:     map[string]store.KV{},
		Status:     map[string]store.Versioned[store.Status]{},
		Slots:      map[string]map[int]store.Versioned[store.Slot]{},
		Instances:  map[string]store.Versioned[store.Instance]{},
		ByGroup:    map[string][]string{},
		Alive:      map[string]store.Versioned[store.Alive]{},
		Reports:    map[string]store.Versioned[store.Report]{},
		Requests:   map[string]store.Versioned[store.Request]{},
		ToGroup:    map[string][]string{},
		ToInstance: map[string][]string{},
		Strays:     map[string]store.Versioned[store.Stray]{},
		Claiming:   map[string]map[string]bool{},
		Turns:      map[string]store.Revision{},
		Tokens:     map[string]store.Versioned[store.JoinToken]{},
		Joined:     map[string]store.Versioned[store.Joined]{},
		Secrets:    map[string]store.Versioned[store.Secret]{},
		Webhooks:   map[string]store.Versioned[store.Webhook]{},
		Extras:     map[string]store.Versioned[store.Extra]{},
		Unreadable: map[string]string{},
		Spoiled:    map[string]Spoiled{},
		Missing:    map[string]Missing{},
		Gone:       map[string]Note{},
		GoneIn:     map[string]map[string]Note{},
	}
}

// FromListing returns the content for a listing of a whole shard.
func FromListing(keys store.Keys, l store.Listing) *Content {
	c := NewContent()
	c.Take(keys, l.KVs)
	c.Revision = l.Revision
	return c
}

// GroupNames returns the names of the groups that have a spec or a status. The map is the caller's.
func (c *Content) GroupNames() map[string]bool {
	names := make(map[string]bool, len(c.Status))
	for name := range c.Groups {
		names[name] = true
	}
	for name := range c.Static {
		names[name] = true
	}
	for name := range c.Status {
		names[name] = true
	}
	return names
}

// Take adds some keys of a listing. The caller sets the revision.
func (c *Content) Take(keys store.Keys, kvs []store.KV) {
	for _, kv := range kvs {
		c.put(keys, kv)
	}
}

// Apply makes one change and returns it; false for a key that is not part of the cache. The caller
// sets the revision.
func (c *Content) Apply(keys store.Keys, e store.Event) (Change, bool) {
	kind, name, ok := keys.Split(e.KV.Key)
	if !ok {
		return Change{}, false
	}
	change := Change{Kind: kind, Name: name, Deleted: e.Deleted, Group: c.groupOf(kind, name)}
	switch kind {
	case store.KindTurns: // the change that took the turn is reported separately
		change.Same = !e.Deleted
	case store.KindTokens, store.KindJoined, store.KindSecrets: // only gateways read them
		change.Same = true
	case store.KindBackup, store.KindWebhooks, store.KindExtras: // only displayed
		change.Same = true
	}
	if kind == store.KindGone {
		change.Group = c.Gone[keys.OfGone(name)].Group
	}
	if kind == store.KindAlive {
		if old, had := c.Alive[name]; had {
			change.Alive = &old.Record
		}
	}
	if e.Deleted {
		c.delete(keys, kind, name, e.KV.Key)
		return change, true
	}
	before, reported := c.Reports[name]
	status := c.Status[name].Record
	intact := c.intact(e.KV.Key)
	if !c.put(keys, e.KV) {
		return Change{}, false
	}
	intact = intact && c.intact(e.KV.Key) // that a key is damaged, or no longer, is news
	if kind == store.KindReports && reported && intact {
		now := c.Reports[name]
		change.Same = sameVerdict(&before.Record, &now.Record)
	}
	if kind == store.KindStatus && intact {
		change.Numbers = newNumbers(status, c.Status[name].Record)
	}
	switch {
	case kind == store.KindGone:
		change.Group = c.Gone[keys.OfGone(name)].Group
	case change.Group == "":
		change.Group = c.groupOf(kind, name)
	}
	return change, true
}

// ApplyReport writes a report that need not be decoded, as Apply does with one that must be. The
// caller sets the revision.
func (c *Content) ApplyReport(v store.Versioned[store.Report]) Change {
	name := v.Record.Instance
	before, reported := c.Reports[name]
	intact := c.intact(v.Key)
	use(&v.Record.BootID, c.Alive[name].Record.BootID)
	c.Reports[name] = v
	c.readable(v.Key)
	return Change{
		Kind: store.KindReports, Name: name, Group: c.groupOf(store.KindReports, name),
		Same: reported && intact && sameVerdict(&before.Record, &v.Record),
	}
}

// ApplyStatus writes a status that need not be decoded, as Apply does with one that must be. The
// caller sets the revision.
func (c *Content) ApplyStatus(v store.Versioned[store.Status]) Change {
	name := v.Record.Group
	before, intact := c.Status[name].Record, c.intact(v.Key)
	if reflect.DeepEqual(before.Accepted, v.Record.Accepted) {
		v.Record.Accepted = before.Accepted
	}
	c.Status[name] = v
	if v.Record.Records == nil {
		c.forgiveMissing(name)
	}
	c.readable(v.Key)
	return Change{
		Kind: store.KindStatus, Name: name, Group: name, Numbers: intact && newNumbers(before, v.Record),
	}
}

// sameVerdict reports whether two reports agree in everything that others act on. An optional check
// counts too: it may tell the planner that a workload is idle (BUSY-1).
func sameVerdict(a, b *store.Report) bool {
	return a.BootID == b.BootID && a.Healthy == b.Healthy && a.Why == b.Why &&
		a.Config == b.Config && a.Restarted == b.Restarted && a.Drained == b.Drained && a.Notice.Same(b.Notice) &&
		a.Upgrade.Same(b.Upgrade) && a.Stopped == b.Stopped && a.Agent == b.Agent &&
		slices.EqualFunc(a.Checks, b.Checks, store.CheckReport.Same) &&
		(a.Workload == nil) == (b.Workload == nil) &&
		(a.Workload == nil || a.Workload.At.Equal(b.Workload.At) && a.Workload.Code == b.Workload.Code)
}

// newNumbers reports whether two statuses differ at most in the numbers of a wish by load.
func newNumbers(a, b store.Status) bool {
	if a.Scale == nil || b.Scale == nil {
		return false
	}
	was, is := *a.Scale, *b.Scale
	for _, s := range []*store.Scale{&was, &is} {
		s.Wish, s.Asks, s.Wishes, s.Numbers, s.At, s.Pace = 0, 0, nil, nil, time.Time{}, nil
	}
	a.Scale, b.Scale = &was, &is
	a.Counted, b.Counted = 0, 0 // every write has another one
	if a.Accepted == b.Accepted {
		a.Accepted, b.Accepted = nil, nil // shared, as it nearly always is
	}
	return reflect.DeepEqual(a, b)
}

// groupOf returns the group of a key, as far as the content shows it.
func (c *Content) groupOf(kind, name string) string {
	switch kind {
	case store.KindGroups, store.KindStatic, store.KindStatus:
		return name
	case store.KindStrays:
		if claim := c.Strays[name].Record.Claim; claim != nil {
			return claim.Group
		}
		return ""
	case store.KindSlots:
		group, _, _ := store.SplitSlot(name)
		return group
	case store.KindInstances, store.KindAlive, store.KindReports:
		return c.Instances[name].Record.Group
	case store.KindRequests:
		r := c.Requests[name].Record
		if r.Instance != "" {
			return c.Instances[r.Instance].Record.Group
		}
		return r.Group
	default:
		return ""
	}
}

// put stores a key; false if it is not part of the cache.
func (c *Content) put(keys store.Keys, kv store.KV) bool {
	kind, name, ok := keys.Split(kv.Key)
	if !ok {
		return false
	}
	known, err := c.putRecord(keys, kind, name, kv)
	switch {
	case !known:
		return false
	case err != nil:
		c.spoil(kv, err)
		delete(c.Missing, kv.Key)
	default:
		c.readable(kv.Key)
	}
	return true
}

// putRecord stores the record of a key, unless it cannot be read; false for a kind that is not part
// of the cache.
func (c *Content) putRecord(keys store.Keys, kind, name string, kv store.KV) (known bool, err error) {
	switch kind {
	case store.KindShard:
		err = decode(kv, c.takeShard)
	case store.KindServed:
		err = decode(kv, func(v store.Versioned[store.Served]) { c.Served = v })
	case store.KindLeader:
		c.Leaders[name] = kv
	case store.KindReplicas:
		err = decode(kv, func(v store.Versioned[store.Replica]) { c.Replicas[name] = v })
	case store.KindGroups:
		c.Groups[name] = kv
	case store.KindStatic:
		c.Static[name] = kv
	case store.KindStatus:
		err = c.putStatus(name, kv)
	case store.KindSlots:
		group, n, ok := store.SplitSlot(name)
		if !ok {
			return false, nil
		}
		err = decode(kv, func(v store.Versioned[store.Slot]) { c.takeSlot(group, n, v) })
	case store.KindInstances:
		err = c.putInstance(name, kv)
	case store.KindAlive:
		err = decode(kv, func(v store.Versioned[store.Alive]) {
			c.shareAlive(name, &v.Record)
			c.Alive[name] = v
		})
	case store.KindReports:
		err = decode(kv, func(v store.Versioned[store.Report]) {
			c.shareReport(name, &v.Record)
			c.Reports[name] = v
		})
	case store.KindRequests:
		err = decode(kv, func(v store.Versioned[store.Request]) {
			v.Record.ID = name
			c.takeRequest(v)
		})
	case store.KindTurns:
		c.Turns[name] = kv.Modified
	case store.KindTokens:
		err = decode(kv, func(v store.Versioned[store.JoinToken]) { c.Tokens[name] = v })
	case store.KindJoined:
		err = decode(kv, func(v store.Versioned[store.Joined]) { c.Joined[name] = v })
	case store.KindStrays:
		err = decode(kv, func(v store.Versioned[store.Stray]) { c.takeStray(name, v) })
	case store.KindGone:
		err = decode(kv, func(v store.Versioned[store.Gone]) { c.takeNote(keys.OfGone(name), v) })
	case store.KindSecrets:
		err = decode(kv, func(v store.Versioned[store.Secret]) {
			v.Record.Name = name // the key is authoritative; a ciphertext of another name does not decrypt
			c.Secrets[name] = v
		})
	case store.KindBackup, store.KindWebhooks, store.KindExtras:
		c.putShown(kind, name, kv)
	default:
		return false, nil
	}
	return true, err
}

func (c *Content) putStatus(group string, kv store.KV) error {
	v, err := c.groups.Decode(kv)
	if err != nil {
		return err
	}
	c.Status[group] = v
	if v.Record.Records == nil {
		c.forgiveMissing(group)
	}
	return nil
}

func (c *Content) putInstance(id string, kv store.KV) error {
	v, err := c.specs.Decode(kv)
	if err != nil {
		return err
	}
	v.Record.ID = id
	c.shareInstance(&v.Record)
	c.takeInstance(v)
	return nil
}

// intact reports whether nothing is known to be wrong with a key.
func (c *Content) intact(key string) bool {
	_, unreadable := c.Unreadable[key]
	_, missing := c.Missing[key]
	return !unreadable && !missing
}

// readable forgets what was wrong with a key.
func (c *Content) readable(key string) {
	delete(c.Unreadable, key)
	delete(c.Spoiled, key)
	delete(c.Missing, key)
}

func (c *Content) takeShard(v store.Versioned[store.Shard]) {
	last := store.DefaultShardSettings()
	if c.settings != nil {
		last = *c.settings
	}
	v.Record.Settings = v.Record.Settings.WithDefaults().After(last) // REC-20
	c.Shard, c.settings = v, &v.Record.Settings
}

func (c *Content) takeSlot(group string, n int, v store.Versioned[store.Slot]) {
	v.Record.Group, v.Record.Number = group, n // the key is authoritative
	share(&c.texts, &v.Record.Template)
	if c.Slots[group] == nil {
		c.Slots[group] = map[int]store.Versioned[store.Slot]{}
	}
	c.Slots[group][n] = v
}

// putShown stores a record that decides nothing.
func (c *Content) putShown(kind, name string, kv store.KV) {
	var err error
	switch kind {
	case store.KindBackup:
		err = decode(kv, func(v store.Versioned[store.Backup]) { c.Backup = v })
	case store.KindWebhooks:
		err = decode(kv, func(v store.Versioned[store.Webhook]) {
			v.Record.Name = name
			c.Webhooks[name] = v
		})
	case store.KindExtras:
		err = decode(kv, func(v store.Versioned[store.Extra]) {
			v.Record.Instance = name
			c.Extras[name] = v
		})
	}
	if err != nil {
		c.deleteShown(kind, name)
	}
}

func (c *Content) deleteShown(kind, name string) {
	switch kind {
	case store.KindBackup:
		c.Backup = store.Versioned[store.Backup]{}
	case store.KindWebhooks:
		delete(c.Webhooks, name)
	case store.KindExtras:
		delete(c.Extras, name)
	}
}

func decode[T any](kv store.KV, take func(store.Versioned[T])) error {
	v, err := store.Decode[T](kv)
	if err != nil {
		return err
	}
	take(v)
	return nil
}

func (c *Content) delete(keys store.Keys, kind, name, key string) {
	c.noteMissing(keys, kind, name, key)
	delete(c.Unreadable, key)
	delete(c.Spoiled, key)
	switch kind {
	case store.KindShard:
		c.Shard = store.Versioned[store.Shard]{}
	case store.KindServed:
		c.Served = store.Versioned[store.Served]{}
	case store.KindLeader:
		delete(c.Leaders, name)
	case store.KindReplicas:
		delete(c.Replicas, name)
	case store.KindGroups:
		delete(c.Groups, name)
	case store.KindStatic:
		delete(c.Static, name)
	case store.KindStatus:
		delete(c.Status, name)
		c.groups.Forget(key)
	case store.KindSlots:
		if group, n, ok := store.SplitSlot(name); ok {
			delete(c.Slots[group], n)
			if len(c.Slots[group]) == 0 {
				delete(c.Slots, group)
			}
		}
	case store.KindInstances:
		c.dropInstance(name)
	case store.KindAlive:
		delete(c.Alive, name)
	case store.KindReports:
		delete(c.Reports, name)
	case store.KindRequests:
		c.dropRequest(name)
	case store.KindStrays:
		c.dropStray(name)
	case store.KindTurns:
		delete(c.Turns, name)
	case store.KindTokens:
		delete(c.Tokens, name)
	case store.KindJoined:
		delete(c.Joined, name)
	case store.KindSecrets:
		delete(c.Secrets, name)
	case store.KindGone:
		c.dropNote(keys.OfGone(name))
	case store.KindBackup, store.KindWebhooks, store.KindExtras:
		c.deleteShown(kind, name)
	}
}
