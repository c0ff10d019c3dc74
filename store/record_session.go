package store

import (
	"fmt"
	"time"
)

// StreamState is the state of an agent's stream as its gateway knows it (DET-6).
type StreamState string

// The states of a stream.
const (
	StreamOpen    StreamState = "open"
	StreamOverdue StreamState = "overdue" // silent for 1.5 report intervals
	StreamLost    StreamState = "lost"    // closed without goodbye
	StreamLeft    StreamState = "left"    // goodbye: restart or shutdown
	StreamMoved   StreamState = "moved"   // goodbye: to another replica
)

// Troubled reports whether the agent cannot be heard, or has said that it will not be.
func (s StreamState) Troubled() bool {
	return s == StreamOverdue || s == StreamLost || s == StreamLeft
}

// Goodbye is the kind of farewell that an agent gave (DET-8).
type Goodbye string

// The kinds of goodbye.
const (
	GoodbyeRestart    Goodbye = "restart"
	GoodbyeShutdown   Goodbye = "shutdown"
	GoodbyeMoving     Goodbye = "moving"
	GoodbyeEvacuating Goodbye = "evacuating"
	// GoodbyeRefused is none: the agent is there and comes again and again, and the replica does
	// not understand it.
	GoodbyeRefused Goodbye = "refused"
)

// Alive is an agent's session, on the agent's lease: when the lease ends the key goes.
type Alive struct {
	Schema   int         `json:"schema"`
	Instance string      `json:"instance"`
	Replica  string      `json:"replica"`
	Lease    string      `json:"lease"` // as etcdctl prints it
	BootID   string      `json:"boot_id"`
	Epoch    uint64      `json:"epoch"` // number of the agent's stream; the highest wins (DET-18)
	State    StreamState `json:"state"`
	Goodbye  Goodbye     `json:"goodbye,omitempty"` // with state left
	Why      string      `json:"why,omitempty"`     // what made it overdue or lost
	Since    time.Time   `json:"since"`
	Agent    string      `json:"agent"` // the agent's version
	// Protocol is the version of the protocol that is spoken, or that a refused agent speaks; 0:
	// the replica is of release 0.1.
	Protocol uint32 `json:"protocol,omitempty"`
}

// Stray is an agent that said hello though there is no record of it (REC-8). On a lease.
type Stray struct {
	Schema   int       `json:"schema"`
	Instance string    `json:"instance"`
	Replica  string    `json:"replica"`
	From     string    `json:"from"`
	At       time.Time `json:"at"`
	BootID   string    `json:"boot_id,omitempty"`
	Agent    string    `json:"agent,omitempty"` // the agent's version
	// Claim is what the agent was when its record was last seen: by a coordinator's seal, or from
	// the replica's own memory. Nil where neither is known.
	Claim *Claim `json:"claim,omitempty"`
}

// Report is the last persisted report of an agent (DET-13, DET-16).
type Report struct {
	Schema   int           `json:"schema"`
	Instance string        `json:"instance"`
	Replica  string        `json:"replica"`
	Received time.Time     `json:"received"`
	Agent    string        `json:"agent"`
	BootID   string        `json:"boot_id"`
	Epoch    uint64        `json:"epoch"`
	Sequence uint64        `json:"sequence"`
	Sent     time.Time     `json:"sent"`
	Started  time.Time     `json:"started"` // the agent's start
	Uptime   Duration      `json:"uptime"`  // the machine's
	Healthy  bool          `json:"healthy"` // the verdict of all checks that are not optional
	Why      string        `json:"why,omitempty"`
	Checks   []CheckReport `json:"checks,omitempty"`
	Host     HostReport    `json:"host"`
	Workload *WorkloadExit `json:"workload_exit,omitempty"`

	Config    string  `json:"config_hash,omitempty"` // of what it was sent last and has applied
	Restarted string  `json:"restarted,omitempty"`   // token of the last restart that it has carried out
	Drained   string  `json:"drained,omitempty"`     // token of the drain whose hook has ended
	Notice    *Notice `json:"notice,omitempty"`      // that the machine will end

	// Stopped is the revision of the record that ended the instance, once its workload has stopped for
	// that. Only kept of machines that were set up by hand (PROV-9).
	Stopped Revision `json:"stopped,omitempty"`

	Trust       string             `json:"trust,omitempty"` // digest of the authorities that the agent trusts
	Certificate *CertificateReport `json:"certificate,omitempty"`

	Files []FileReport `json:"files,omitempty"`
	// FilesRoots are all directories below which the agent writes files; none: they are not known.
	FilesRoots []string `json:"files_roots,omitempty"`

	Upgrade *UpgradeReport `json:"upgrade,omitempty"` // how the last offer of another version ended
}

// FileReport is how a file is on the machine.
type FileReport struct {
	Path    string    `json:"path"` // as in the group's spec
	State   FileState `json:"state"`
	Why     string    `json:"why,omitempty"`
	At      time.Time `json:"at,omitzero"` // when it was written last
	Version string    `json:"version,omitempty"`
	Ends    time.Time `json:"ends,omitzero"` // of a certificate
}

// FileState is whether a file is on the machine as it is wanted.
type FileState string

// The states of a file.
const (
	FileDelivered FileState = "delivered"
	FileMissing   FileState = "missing" // it was never written, or is gone
	FileError     FileState = "error"   // it is there, and not as it is wanted
)

// Same reports whether two reports of a file are equal.
func (f FileReport) Same(o FileReport) bool {
	return f.Path == o.Path && f.State == o.State && f.Why == o.Why && f.Version == o.Version && f.At.Equal(o.At) &&
		f.Ends.Equal(o.Ends)
}

// CertificateReport is an agent's newest certificate, as reported.
type CertificateReport struct {
	Issuer string    `json:"issuer"` // fingerprint of the authority
	Ends   time.Time `json:"ends"`
}

// Same reports whether two reports are of the same certificate, or of none.
func (c *CertificateReport) Same(o *CertificateReport) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.Issuer == o.Issuer && c.Ends.Equal(o.Ends)
}

// NoticeEvacuating is the kind of notice with which the machine's operator asks for it to be
// emptied: it takes the time that this takes (DRAIN-3).
const NoticeEvacuating = "evacuating"

// Notice is the word that a machine will be taken away (SPOT-2).
type Notice struct {
	Kind string `json:"kind"`
	Why  string `json:"why,omitempty"`
	// In is how long after the report the machine ends; 0: it is not known.
	In Duration  `json:"in,omitempty"`
	At time.Time `json:"at"` // when the agent saw it
}

// Same reports whether two reports are of the same notice, or of none. The time that is left is not
// compared: it differs in each.
func (n *Notice) Same(o *Notice) bool {
	if n == nil || o == nil {
		return n == o
	}
	return n.Kind == o.Kind && n.Why == o.Why && n.At.Equal(o.At)
}

// CheckReport is the state of one check.
type CheckReport struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind,omitempty"` // http, tcp, grpc, exec or process
	Healthy  bool      `json:"healthy"`
	Optional bool      `json:"optional,omitempty"`
	Pending  bool      `json:"pending,omitempty"` // its results have not decided yet: Healthy is the last verdict
	Why      string    `json:"why,omitempty"`
	Since    time.Time `json:"since"` // of Healthy
	// Against counts the last results in a row that contradict Healthy; Threshold of them change it,
	// 0: any number.
	Against   int      `json:"against,omitempty"`
	Threshold int      `json:"threshold,omitempty"`
	Took      Duration `json:"took,omitempty"` // the last run
}

// Same reports whether two results of a check agree in everything that others act on.
func (c CheckReport) Same(o CheckReport) bool {
	return c.Name == o.Name && c.Healthy == o.Healthy && c.Optional == o.Optional && c.Pending == o.Pending
}

// Progress returns how far a check has come to another verdict, like 1/2; "" where nothing points
// there.
func (c CheckReport) Progress() string {
	if c.Threshold == 0 || c.Healthy && c.Against == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", c.Against, c.Threshold)
}

// HostReport is what the machine uses.
type HostReport struct {
	CPUPercent    float64 `json:"cpu_percent"`
	MemoryPercent float64 `json:"memory_percent"`
	DiskPercent   float64 `json:"disk_percent"`
	NetworkSent   uint64  `json:"network_sent"`
	NetworkRecv   uint64  `json:"network_received"`

	Windows []HostWindow `json:"windows,omitempty"`
}

// HostWindow is what the machine used over a time up to the report: percents are means, bytes are
// sums over the time that is covered.
type HostWindow struct {
	Span    Duration `json:"span"`
	Covered Duration `json:"covered"` // of the span: less after the agent's start

	CPUPercent    float64 `json:"cpu_percent"`
	MemoryPercent float64 `json:"memory_percent"`
	DiskPercent   float64 `json:"disk_percent"`
	NetworkSent   uint64  `json:"network_sent"`
	NetworkRecv   uint64  `json:"network_received"`

	// CPUIdle and NetworkIdle: measured, and exactly zero. A zero without them was not measured, or
	// comes from an agent that is older than they are.
	CPUIdle     bool `json:"cpu_idle,omitempty"`
	NetworkIdle bool `json:"network_idle,omitempty"`
}

// WorkloadExit is how a workload ended.
type WorkloadExit struct {
	Code   int       `json:"code"`
	Signal string    `json:"signal,omitempty"`
	At     time.Time `json:"at"`
	Output string    `json:"output,omitempty"` // its last words
}
