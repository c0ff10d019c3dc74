package store

import "strings"

// Reach is how a change of a field reaches existing instances.
type Reach string

// The ways in which a change reaches instances.
const (
	ReachAtOnce Reach = "at once" // the leader uses the group's spec
	ReachByRoll Reach = "by roll" // it is part of the template: see InstanceSpec.TemplateHash
	ReachLater  Reach = "later"   // an instance keeps what its record says, until something else brings it up to date
)

// ReachOf returns the reach of the field that a path names or belongs to.
func ReachOf(path string) Reach {
	path, _, _ = strings.Cut(path, "[")
	switch path {
	case "spot.enabled", "spot.source", "spot.file", "spot.endpoint":
		return ReachLater
	case "busy.timeout":
		return ReachAtOnce
	}
	field, _, _ := strings.Cut(path, ".")
	switch field {
	case "provider", "template", "workload", "vars", "secrets", "checks", "slots", "files", "busy":
		return ReachByRoll
	case "report", "registration_timeout", "max_checking_health_duration", "stop_timeout", "drain", "lifecycle":
		return ReachLater
	default:
		return ReachAtOnce
	}
}
