package store

import "slices"

// durableKinds are the kinds of keys that cannot be derived from others: a lost or spoiled one is
// damage, and can be put back from etcd's history. Orders and join tokens are not among them: one
// that was carried out or used must not come back.
var durableKinds = []string{
	KindShard, KindServed, KindGroups, KindStatic, KindStatus, KindSlots, KindInstances,
	KindJoined, KindSecrets,
}

// DurableKinds lists the kinds of keys that cannot be derived from others.
func DurableKinds() []string { return slices.Clone(durableKinds) }

// Readable returns why a key's value cannot be read, or nil. It does not check whether a spec is
// valid: see ReadInForce.
func (k Keys) Readable(kv KV) error {
	kind, _, _ := k.Split(kv.Key)
	var record any
	switch kind {
	case KindShard:
		record = new(Shard)
	case KindServed:
		record = new(Served)
	case KindBackup:
		record = new(Backup)
	case KindWebhooks:
		record = new(Webhook)
	case KindStatus:
		record = new(Status)
	case KindSlots:
		record = new(Slot)
	case KindInstances:
		record = new(Instance)
	case KindJoined:
		record = new(Joined)
	case KindSecrets:
		record = new(Secret)
	case KindAlive:
		record = new(Alive)
	case KindReports:
		record = new(Report)
	case KindRequests:
		record = new(Request)
	case KindStrays:
		record = new(Stray)
	case KindHosts:
		record = new(HostToken)
	case KindLoads:
		record = new(Load)
	case KindDays:
		record = new(Day) // the note that a day is summed up has no other field of the same name
	case KindReplicas:
		record = new(Replica)
	default: // a spec is read field by field, with positions
		record = new(map[string]any)
	}
	return decodeInto(kv, record)
}
