package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Keys builds the keys of one shard. No other code does.
type Keys struct{ root string }

// Root is the prefix under which every shard lives.
const Root = "/leasehold/"

// KeysOf builds the keys of the shard with this name.
func KeysOf(shard string) Keys { return Keys{root: Root + shard + "/"} }

// Prefix is everything of the shard.
func (k Keys) Prefix() string { return k.root }

// Kinds of keys: the first element below the shard's prefix.
const (
	KindShard     = "shard"
	KindServed    = "served"
	KindLeader    = "leader"
	KindReplicas  = "replicas"
	KindGroups    = "groups"
	KindStatic    = "static"
	KindRequests  = "requests"
	KindStatus    = "status"
	KindSlots     = "slots"
	KindInstances = "instances"
	KindAlive     = "alive"
	KindReports   = "reports"
	KindEvents    = "events"
	KindTokens    = "tokens"
	KindJoined    = "joined"
	KindSecrets   = "secrets"
	KindStrays    = "strays"
	KindTurns     = "turns"
	KindGone      = "gone"
	KindExtras    = "extras"
	KindBackup    = "backup"
	KindWebhooks  = "webhooks"
	KindHosts     = "hosts"
	KindLoads     = "loads"
	KindDays      = "days"
)

func (k Keys) Shard() string              { return k.root + KindShard }
func (k Keys) Served() string             { return k.root + KindServed }
func (k Keys) Backup() string             { return k.root + KindBackup }
func (k Keys) Webhook(name string) string { return k.root + KindWebhooks + "/" + name }
func (k Keys) Replica(id string) string   { return k.root + KindReplicas + "/" + id }
func (k Keys) Group(name string) string   { return k.root + KindGroups + "/" + name }
func (k Keys) Static(name string) string  { return k.root + KindStatic + "/" + name }
func (k Keys) Turn(group string) string   { return k.root + KindTurns + "/" + group }
func (k Keys) Request(id string) string   { return k.root + KindRequests + "/" + id }
func (k Keys) Status(name string) string  { return k.root + KindStatus + "/" + name }
func (k Keys) Instance(id string) string  { return k.root + KindInstances + "/" + id }
func (k Keys) Alive(id string) string     { return k.root + KindAlive + "/" + id }
func (k Keys) Report(id string) string    { return k.root + KindReports + "/" + id }
func (k Keys) Stray(id string) string     { return k.root + KindStrays + "/" + id }
func (k Keys) Token(hash string) string   { return k.root + KindTokens + "/" + hash }
func (k Keys) Joined(id string) string    { return k.root + KindJoined + "/" + id }
func (k Keys) Secret(name string) string  { return k.root + KindSecrets + "/" + name }
func (k Keys) Host(hash string) string    { return k.root + KindHosts + "/" + hash }
func (k Keys) Extra(id string) string     { return k.root + KindExtras + "/" + id }

// Load returns the key of the load of a group in the hour of a time.
func (k Keys) Load(hour time.Time, group string) string {
	return k.LoadsFrom(hour) + "/" + group
}

// LoadsFrom returns a key that sorts before every load of that hour and of later ones.
func (k Keys) LoadsFrom(hour time.Time) string {
	return k.root + KindLoads + "/" + hour.UTC().Format("20060102T15")
}

// Day returns the key of the summary of a group's day. The key of DayDone, which notes that all of
// the day's summaries are written, sorts before them.
func (k Keys) Day(day, group string) string { return k.DayDone(day) + "/" + group }

// DayDone returns the key of the note that a day, as 2026-11-25, is summed up.
func (k Keys) DayDone(day string) string { return k.root + KindDays + "/" + day }

// Gone returns the key of the note that another key of the shard was deleted on purpose.
func (k Keys) Gone(key string) string {
	return k.root + KindGone + "/" + strings.TrimPrefix(key, k.root)
}

// OfGone returns the key that a note below gone/ is about. The name is what Split returns for the
// note.
func (k Keys) OfGone(name string) string { return k.root + name }

func (k Keys) Leader(id LeaseID) string {
	return k.root + KindLeader + "/" + strconv.FormatInt(int64(id), 16)
}

func (k Keys) Slot(g string, n int) string { return fmt.Sprintf("%s%s/%s/%d", k.root, KindSlots, g, n) }

// Event returns the key of a journal entry: ordered by time, made unique by id.
func (k Keys) Event(at time.Time, id string) string {
	return k.root + KindEvents + "/" + EventTime(at) + "-" + id
}

// EventsFrom returns a key that sorts before every entry of the journal at or after the given time.
func (k Keys) EventsFrom(at time.Time) string { return k.root + KindEvents + "/" + EventTime(at) }

// EventTime returns the sortable form of a time in an event's key.
func EventTime(at time.Time) string { return at.UTC().Format("20060102T150405.000000000") }

// Of returns the prefix of all keys of a kind.
func (k Keys) Of(kind string) string { return k.root + kind + "/" }

// Split splits a key of this shard: its kind, and its name below that ("" for the shard, served and
// backup keys). It fails for a key outside the shard.
func (k Keys) Split(key string) (kind, name string, ok bool) {
	rest, ok := strings.CutPrefix(key, k.root)
	if !ok || rest == "" {
		return "", "", false
	}
	kind, name, _ = strings.Cut(rest, "/")
	return kind, name, true
}

// SplitSlot splits the name of a slot's key.
func SplitSlot(name string) (group string, n int, ok bool) {
	group, num, found := strings.Cut(name, "/")
	if !found {
		return "", 0, false
	}
	n, err := strconv.Atoi(num)
	return group, n, err == nil && n >= 0
}

// ShardOf says to which shard a key below Root belongs.
func ShardOf(key string) (string, bool) {
	rest, ok := strings.CutPrefix(key, Root)
	if !ok {
		return "", false
	}
	shard, _, ok := strings.Cut(rest, "/")
	return shard, ok && shard != ""
}
