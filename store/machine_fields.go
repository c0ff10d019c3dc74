package store

import (
	"cmp"
	"path"
	"time"
)

// leavingFields say when an instance is too old, and how it leaves.
var leavingFields = []Field{
	atMost(ageField("expiry.eligible_age", "EXP-1",
		"Older instances are replaced one at a time, while the whole group is healthy; 0: off.",
		func(g *Group) *Duration { return g.Expiry.EligibleAge }),
		"expiry.forced_age", func(g *Group) (eligible, forced Duration, both bool) {
			if !aged(g.Expiry.EligibleAge) || !aged(g.Expiry.ForcedAge) { // one of them is off, or the shard's
				return 0, 0, false
			}
			return *g.Expiry.EligibleAge, *g.Expiry.ForcedAge, true
		}),
	ageField("expiry.forced_age", "EXP-1", "Older instances are replaced whatever the health of the group; 0: off.",
		func(g *Group) *Duration { return g.Expiry.ForcedAge }),
	durationField("drain.timeout", "5m", "DRAIN-1", "How long the connections through load balancers and the drain hook "+
		"may take; 0: they are not waited for.", 0,
		24*time.Hour,
		func(g *Group) Duration { return g.Drain.Timeout }),
	{
		Path: "drain.hook", Type: "list of strings", Default: "none",
		Allowed: "a program and its arguments, at most 256 of at most 4096 bytes", Rule: "DRAIN-1",
		Doc:   "What the agent runs before its machine is removed; its end is waited for.",
		value: func(g *Group) any { return g.Drain.Hook },
		ok:    func(g *Group) bool { return runOK(g.Drain.Hook) },
	},
}

// machineFields are about spot machines, names of machines, and how machines end.
var machineFields = []Field{
	{
		Path: "spot.enabled", Type: "boolean", Default: "false", Allowed: "true or false", Rule: "SPOT-3",
		Doc:   "The provider may take the machines away: none gets older than spot.max_lifetime.",
		value: func(g *Group) any { return g.Spot.Enabled },
		ok:    func(*Group) bool { return true },
	},
	durationField("spot.max_lifetime", "24h", "SPOT-3",
		"Machines of a spot group are replaced at a random age, at most this old and at least 11/12 of it.",
		time.Minute, 365*24*time.Hour,
		func(g *Group) Duration { return g.Spot.MaxLifetime }),
	{
		Path: "spot.source", Type: "string", Default: NoticeNone, Allowed: `"none", "aws", "gcp", "azure" or "file"`,
		Rule: "SPOT-1",
		Doc: "Where the agent looks for the word that its machine will be taken away: the cloud's metadata service, " +
			"or a file that another program writes. It looks whether spot.enabled is set or not.",
		value: func(g *Group) any { return g.Spot.Source },
		ok: func(g *Group) bool {
			return oneOf(g.Spot.Source, NoticeNone, NoticeAWS, NoticeGCP, NoticeAzure, NoticeFile)
		},
	},
	{
		Path: "spot.file", Type: "string", Default: "none",
		Allowed: "an absolute path with source file, and nothing with any other", Rule: "SPOT-1",
		Doc: "A file on the machine: once it is there the machine is given up, also if it goes again. " +
			"All machines of the process provider see the same file. It may say kind, why, " +
			"and in (2m) or at (a time), as JSON or line by line.",
		value: func(g *Group) any { return g.Spot.File },
		ok: func(g *Group) bool {
			n := g.Spot.NoticeSpec
			return n.Source == NoticeFile && path.IsAbs(n.File) && len(n.File) <= 4096 || n.Source != NoticeFile &&
				n.File == ""
		},
	},
	{
		Path: "spot.endpoint", Type: "string", Default: "the cloud's own",
		Allowed: "a URL like http://127.0.0.1:8080, with source aws, gcp or azure", Rule: "SPOT-1",
		Doc:   "Where the metadata service is, if not where the cloud has it.",
		value: func(g *Group) any { return g.Spot.Endpoint },
		ok: func(g *Group) bool {
			n := g.Spot.NoticeSpec
			return n.Endpoint == "" || oneOf(n.Source, NoticeAWS, NoticeGCP, NoticeAzure) &&
				endpointForm.MatchString(n.Endpoint) && len(n.Endpoint) <= 500
		},
	},
	{
		Path: "slots.name", Type: "string", Default: "the instance's ID",
		Allowed: "a host name of at most 63 lower-case letters, digits and hyphens, with ${slot} unless " +
			"size is 1; ${group} and the variables of vars are filled in too",
		Rule: "SLOT-1",
		Doc: "The name of the machine in a slot, which its replacement gets as well: the fact ${name}, " +
			"LEASEHOLD_NAME for the workload, and the host's name where cloud-init sets that.",
		value: func(g *Group) any { return g.Slots.Name },
		ok:    func(g *Group) bool { return g.slotNameOK() },
	},
	{
		Path: "capacity.on_demand_base", Type: "integer", Default: "0", Allowed: "0 to size", Rule: "SPOT-4",
		Doc:   "So many instances are always on demand; capacity.spot is a share of the others.",
		value: func(g *Group) any { return g.Capacity.OnDemandBase },
		ok:    func(g *Group) bool { n := g.Capacity.OnDemandBase; return n == 0 || n > 0 && n <= g.Size },
	},
	{
		Path: "capacity.spot", Type: "integer", Default: "0", Allowed: "0 to 100, and 0 with spot.enabled", Rule: "SPOT-4",
		Doc: "The percentage of spot machines, which the provider may take away, among the instances beyond " +
			"capacity.on_demand_base. Unlike spot.enabled, it can fall back to machines on demand.",
		value: func(g *Group) any { return g.Capacity.Spot },
		ok: func(g *Group) bool {
			n := g.Capacity.Spot
			return n >= 0 && n <= 100 && (n == 0 || !g.Spot.Enabled)
		},
	},
	{
		Path: "capacity.fallback", Type: "string", Default: FallbackOnDemand, Allowed: `"on_demand" or "wait"`,
		Rule: "SPOT-4",
		Doc: "What becomes of an instance for which there is no spot capacity: on_demand makes it on demand after " +
			"capacity.fallback_after, wait keeps trying.",
		value: func(g *Group) any { return cmp.Or(g.Capacity.Fallback, FallbackOnDemand) },
		ok:    func(g *Group) bool { return oneOf(g.Capacity.Fallback, "", FallbackOnDemand, FallbackWait) },
	},
	durationField("capacity.fallback_after", "2m", "SPOT-4",
		"How long spot capacity is asked for, in every zone, before an instance is made on demand instead.", 0, time.Hour,
		func(g *Group) Duration { return Duration(g.Capacity.Patience()) }),
	{
		Path: "capacity.return_after", Type: "duration", Default: "30m", Allowed: "0s, or 5m0s to 24h0m0s", Rule: "SPOT-4",
		Doc: "How long after a fallback one instance tries to return to spot; each failure doubles it, up to 24h. " +
			"Until then no spot machine is asked for. 0: nothing returns.",
		value: func(g *Group) any { return Duration(g.Capacity.Return()) },
		ok: func(g *Group) bool {
			d := g.Capacity.Return()
			return d == 0 || d >= 5*time.Minute && d <= MaxReturnAfter
		},
	},
	durationField("on_demand_age", "0s", "REC-2", "On-demand instances older than this are removed; 0: never.", 0,
		365*24*time.Hour,
		func(g *Group) Duration { return g.OnDemandAge }),
	durationField("stop_timeout", "30s", "HEAL-14",
		"How long a machine may take to stop before it is removed all the same.", 0, MaxStopTimeout,
		func(g *Group) Duration { return g.StopTimeout }),
}
