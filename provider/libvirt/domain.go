package libvirt

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	api "github.com/digitalocean/go-libvirt"

	"github.com/leasehold/leasehold/provider"
)

// Of the metadata of a domain.
const (
	namespace       = "urn:leasehold:machine:1"
	namespacePrefix = "leasehold"
)

// step is the step of the last start that was noted last in the domain.
type step string

const (
	stepNew        step = "new"        // it was never started
	stepStarting   step = "starting"   // intent: its first start may have happened
	stepStarted    step = "started"    // a start has succeeded
	stepRestarting step = "restarting" // intent: it may have been ended, and started again
	stepFailed     step = "failed"     // its first start has failed
)

// record is a domain's metadata.
type record struct {
	Shard    string `xml:"shard,attr"`
	Instance string `xml:"instance,attr"`
	Group    string `xml:"group,attr"`
	Zone     string `xml:"zone,attr"` // in which it was made
	Call     string `xml:"call,attr,omitempty"`
	Type     string `xml:"type,attr,omitempty"`
	Patience string `xml:"stop-timeout,attr,omitempty"` // how long it may take to end in order
	Pool     string `xml:"pool,attr"`                   // of its volumes
	Memory   uint64 `xml:"memory,attr"`                 // in bytes

	Step    step   `xml:"step,attr"`
	At      string `xml:"at,attr"` // when the step was noted
	Why     string `xml:"why,attr,omitempty"`
	Stopped bool   `xml:"stopped,attr,omitempty"` // a Stop was to end it

	Networks []string `xml:"network"`
	Tags     []tag    `xml:"tag"`
}

type tag struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

func tagsOf(all map[string]string) (tags []tag) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		tags = append(tags, tag{name, all[name]})
	}
	return tags
}

// encode returns the metadata as XML. In a whole definition they need their name space; where they
// are sent alone, libvirt adds it.
func (r record) encode(space string) (string, error) {
	text, err := xml.Marshal(struct {
		XMLName xml.Name
		record
	}{xml.Name{Space: space, Local: "machine"}, r})
	return string(text), err
}

func (r *record) note(s step) {
	r.Step, r.At, r.Why = s, time.Now().UTC().Format(time.RFC3339), ""
}

// within reports whether a step was noted less than so long ago.
func (r *record) within(grace time.Duration) bool {
	at, err := time.Parse(time.RFC3339, r.At)
	return err == nil && time.Since(at) < grace
}

// domain is a domain as it was read. Its metadata are no older than its state.
type domain struct {
	api.Domain
	record
	state  api.DomainState
	reason int32
}

func (d *domain) isOf(k key) bool {
	return d.Shard == k.shard && d.Instance == k.instance && k.shard != "" && k.instance != ""
}

func (d *domain) down() bool { return isDown(d.state) }

func isDown(s api.DomainState) bool { return s == api.DomainShutoff || s == api.DomainCrashed }

// executes: its guest does, here and therefore nowhere else.
func (d *domain) executes() bool { return d.state == api.DomainRunning || d.state == api.DomainBlocked }

// moved: it was migrated, and runs elsewhere if it runs. libvirt forgets that when it restarts.
func (d *domain) moved() bool {
	return d.state == api.DomainShutoff && d.reason == int32(api.DomainShutoffMigrated)
}

// hasRun: libvirt remembers that the domain has run, until it is started again itself.
func (d *domain) hasRun() bool {
	return d.state == api.DomainCrashed || d.state == api.DomainShutoff && slices.Contains([]api.DomainShutoffReason{
		api.DomainShutoffShutdown, api.DomainShutoffDestroyed, api.DomainShutoffCrashed, api.DomainShutoffMigrated,
		api.DomainShutoffSaved,
	}, api.DomainShutoffReason(d.reason))
}

// errForeign: a domain without metadata of Leasehold.
var errForeign = errors.New("the domain has no metadata of Leasehold's")

// damaged is the error of a domain whose metadata are ours and cannot be read.
type damaged struct {
	name string
	err  error
}

func (d *damaged) Error() string {
	return fmt.Sprintf("the metadata of domain %s cannot be read (%v), so its owner is "+
		"unknown: correct them, or remove the domain",
		d.name, d.err)
}

func (d *damaged) Unwrap() error { return d.err }

// read reads a domain's state and metadata. The state is read again after the metadata if the
// domain seems down: while a restart is under way it is, and the metadata may have been noted after
// that.
func read(l *link, dom api.Domain) (*domain, error) {
	for {
		state, reason, err := l.DomainGetState(dom, 0)
		if err != nil {
			return nil, err
		}
		d := &domain{Domain: dom, state: api.DomainState(state), reason: reason}
		text, err := l.DomainGetMetadata(dom, int32(api.DomainMetadataElement), api.OptString{namespace},
			api.DomainAffectConfig)
		if is(err, api.ErrOperationInvalid) { // undefined while it runs
			text, err = l.DomainGetMetadata(dom, int32(api.DomainMetadataElement), api.OptString{namespace},
				api.DomainAffectCurrent)
		}
		switch {
		case is(err, api.ErrNoDomainMetadata):
			return d, errForeign
		case err != nil:
			return nil, err
		}
		if err := xml.Unmarshal([]byte(text), &d.record); err != nil {
			return nil, &damaged{dom.Name, err}
		}
		if !d.down() {
			return d, nil
		}
		again, _, err := l.DomainGetState(dom, 0)
		if err != nil {
			return nil, err
		}
		if again == state {
			return d, nil
		}
	}
}

// look reads the domain of a machine; nil if there is none. One of that name with other metadata is
// an error to Create, and nothing to all others.
func look(l *link, k key) (*domain, error) {
	dom, err := l.DomainLookupByName(k.nameOf())
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := read(l, dom)
	switch {
	case gone(err):
		return nil, nil
	case errors.Is(err, errForeign):
		return d, nil
	}
	return d, err
}

// find reads the domain of a machine on one hypervisor; nil if there is none.
func (h *hypervisor) find(ctx context.Context, k key) (d *domain, err error) {
	err = h.use(ctx, func(l *link) error {
		d, err = look(l, k)
		return err
	})
	if err != nil {
		return nil, h.meaning(err, "")
	}
	if d != nil && !d.isOf(k) {
		return nil, nil
	}
	return d, nil
}

// change reads the metadata of a domain again and changes them, unless the domain is another one by
// now.
func change(l *link, d *domain, to func(*record)) (*domain, error) {
	now, err := read(l, d.Domain)
	if errors.Is(err, errForeign) || err == nil && !now.isOf(key{d.Shard, d.Instance}) {
		return nil, api.Error{Code: uint32(api.ErrNoDomain), Message: "the domain is another one by now"}
	}
	if err != nil {
		return nil, err
	}
	to(&now.record)
	text, err := now.encode("")
	if err != nil {
		return nil, err
	}
	err = l.DomainSetMetadata(now.Domain, int32(api.DomainMetadataElement), api.OptString{text},
		api.OptString{namespacePrefix},
		api.OptString{namespace}, api.DomainAffectConfig)
	return now, err
}

// machine is what a domain is to the contract. A start that was intended more than grace ago and
// has not come about was interrupted.
func (d *domain) machine(zone string, grace time.Duration) provider.Machine {
	m := provider.Machine{
		Instance: d.Instance, Shard: d.Shard, Group: d.Group, Zone: zone, Ref: d.Name, Call: d.Call,
		Foreign: d.Name != key{d.Shard, d.Instance}.nameOf(), // a clone, or renamed
	}
	m.State, m.Why = d.is(grace)
	return m
}

func (d *domain) is(grace time.Duration) (provider.State, string) {
	starting := d.Step == stepNew || d.Step == stepStarting || d.Step == stepRestarting
	switch d.state {
	case api.DomainRunning, api.DomainBlocked, api.DomainShutdown:
		if d.Stopped || d.state == api.DomainShutdown {
			return provider.StateStopping, ""
		}
		return provider.StateRunning, ""
	case api.DomainPaused:
		switch d.reason {
		case int32(api.DomainPausedStartingUp):
			return provider.StateStarting, ""
		case int32(api.DomainPausedShuttingDown):
			return provider.StateStopping, ""
		case int32(api.DomainPausedCrashed):
			return provider.StateCrashed, "its guest has crashed, and the domain is paused"
		case int32(api.DomainPausedIoerror):
			return provider.StateRunning, "paused: it could not write to its disk"
		}
		return provider.StateRunning, "paused"
	case api.DomainShutoff, api.DomainCrashed:
	default:
		return provider.StateUnknown, fmt.Sprintf("libvirt's state %d", d.state)
	}
	switch {
	case starting && d.within(grace):
		return provider.StateStarting, ""
	case d.Step == stepFailed:
		return provider.StateFailed, d.Why
	case d.Stopped:
		return provider.StateStopped, "stopped on request"
	case d.Step == stepNew || d.Step == stepStarting && !d.hasRun() || d.Step == stepRestarting:
		return provider.StateFailed, "its start was interrupted"
	}
	switch d.reason {
	case int32(api.DomainShutoffSaved):
		return provider.StateUnknown, "its memory is saved to a file: virsh start resumes it"
	case int32(api.DomainShutoffMigrated):
		return provider.StateUnknown, "it was moved to another hypervisor"
	case int32(api.DomainShutoffShutdown):
		return provider.StateCrashed, "the guest has shut itself down, and not by a Stop of Leasehold's"
	case int32(api.DomainShutoffDestroyed):
		return provider.StateCrashed, "the domain was destroyed, and not by a Stop of Leasehold's"
	case int32(api.DomainShutoffCrashed):
		return provider.StateCrashed, "QEMU has ended"
	}
	return provider.StateCrashed, "the domain does not run, and libvirt does not say why: the host may have been restarted"
}
