package openstack

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/provider"
)

// Leasehold's metadata of a server, beside the user's tags.
const (
	tags        = "leasehold_"
	tagShard    = tags + "shard"
	tagInstance = tags + "instance"
	tagGroup    = tags + "group"
	tagZone     = tags + "zone"
	tagCall     = tags + "call" // which Create made it (PROV-4)
	tagStop     = tags + "stop" // stopAsked: it was to stop, so that SHUTOFF is no crash
)

const (
	stopAsked = "asked"
	stopNone  = "no"
)

// server is a server as Nova shows it. One in a part of Nova that is down has no more than its ID
// and the status UNKNOWN.
type server struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Status     string            `json:"status"`
	Task       string            `json:"OS-EXT-STS:task_state"`
	Power      int               `json:"OS-EXT-STS:power_state"`
	LaunchedAt string            `json:"OS-SRV-USG:launched_at"` // "": it never was
	Metadata   map[string]string `json:"metadata"`
	Fault      struct {
		Message string `json:"message"`
	} `json:"fault"`
	Addresses map[string][]struct {
		Addr    string `json:"addr"`
		Version int    `json:"version"`
		Type    string `json:"OS-EXT-IPS:type"`
	} `json:"addresses"`
}

// Nova's statuses.
const (
	statusActive      = "ACTIVE"
	statusShutoff     = "SHUTOFF"
	statusError       = "ERROR"
	statusBuild       = "BUILD"
	statusUnknown     = "UNKNOWN"
	statusDeleted     = "DELETED"
	statusSoftDeleted = "SOFT_DELETED"
)

// Nova's power states.
const (
	powerShutdown = 4
	powerCrashed  = 6
)

func (s *server) isOf(shard, instance string) bool {
	return shard != "" && instance != "" && s.Metadata[tagShard] == shard && s.Metadata[tagInstance] == instance
}

// hidden: Nova knows that there is such a server, and nothing about it.
func (s *server) hidden() bool { return s.Status == statusUnknown && s.Metadata == nil }

// neverRan: nothing of this server has ever run.
func (s *server) neverRan() bool { return s.Status == statusError && s.LaunchedAt == "" }

// inVain: there was no room for it, or no quota. Another try may find some.
func (s *server) inVain() bool {
	return s.neverRan() && (full(s.Fault.Message) || noAddress(s.Fault.Message) || isQuota(s.Fault.Message))
}

// scheduling: Nova has not yet found a host for it.
func (s *server) scheduling() bool {
	return s.Status == statusBuild && (s.Task == "" || s.Task == "scheduling")
}

func (s *server) seen() seen {
	if s.Metadata[tagInstance] == "" {
		return seen{}
	}
	return seen{
		shard: s.Metadata[tagShard], instance: s.Metadata[tagInstance], group: s.Metadata[tagGroup],
		zone: s.Metadata[tagZone], call: s.Metadata[tagCall], address: s.address(),
	}
}

func (s *server) machine() provider.Machine { return s.seen().machine(s) }

// machine is a server with what is known of it.
func (k seen) machine(s *server) provider.Machine {
	m := provider.Machine{
		Instance: k.instance, Shard: k.shard, Group: k.group, Ref: s.ID, Zone: k.zone, Address: k.address, Call: k.call,
	}
	m.State, m.Why = s.state()
	return m
}

// state is what Nova's words mean. A state that is down is only what Nova is sure of.
func (s *server) state() (state provider.State, why string) {
	down := func() (provider.State, string) {
		if s.Metadata[tagStop] == stopAsked {
			return provider.StateStopped, ""
		}
		return provider.StateCrashed, "it ended, and Leasehold has not asked it to"
	}
	switch s.Status {
	case statusActive, "PASSWORD", "MIGRATING":
		if strings.HasPrefix(s.Task, "powering-off") || s.Task == "deleting" || s.Task == "soft-deleting" {
			return provider.StateStopping, ""
		}
		return provider.StateRunning, ""
	case "PAUSED":
		return provider.StateRunning, "paused"
	case statusBuild, "REBOOT", "HARD_REBOOT", "REBUILD":
		return provider.StateStarting, ""
	case statusShutoff:
		switch {
		case strings.HasPrefix(s.Task, "powering-on"), strings.HasPrefix(s.Task, "reboot"):
			return provider.StateStarting, ""
		case s.Task != "" && s.Task != "powering-off" && s.Task != "deleting":
			return provider.StateUnknown, s.Status + ", " + s.Task
		}
		return down()
	case statusDeleted, statusSoftDeleted:
		return provider.StateStopped, strings.ToLower(s.Status)
	case statusError:
		fault := cmp.Or(s.Fault.Message, "Nova gives no reason")
		switch {
		case s.LaunchedAt == "":
			return provider.StateFailed, fault
		case s.Power == powerShutdown || s.Power == powerCrashed:
			state, _ := down()
			return state, fault
		}
		// An operation on it failed; the guest may well run.
		return provider.StateUnknown, "ERROR: " + fault
	}
	return provider.StateUnknown, s.Status
}

// address is one by which the machine is reached: an IPv4 one if it has any, of the first of its
// networks, by name.
func (s *server) address() string {
	var v6 string
	for _, network := range slices.Sorted(maps.Keys(s.Addresses)) {
		for _, a := range s.Addresses[network] {
			switch {
			case a.Type == "floating":
			case a.Version == 4:
				return a.Addr
			case v6 == "":
				v6 = a.Addr
			}
		}
	}
	return v6
}

const (
	namePrefix = "ls-"
	maxName    = 255
)

var notOfAName = regexp.MustCompile(`[^A-Za-z0-9.-]`)

// nameOf is the name of an instance's servers. It need not be unique: what tells servers apart is
// their metadata.
func nameOf(instance string) string {
	name := namePrefix + notOfAName.ReplaceAllString(instance, "-")
	return name[:min(len(name), maxName)]
}
