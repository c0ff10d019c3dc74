package store

import "time"

// Members is what etcd's members say of themselves.
type Members struct {
	All []Member `json:"members"`
	// NoAuthentication: everyone who reaches etcd may do everything.
	NoAuthentication bool `json:"no_authentication,omitempty"`
	// CertificateEnds is when the certificate ends that they were asked with.
	CertificateEnds time.Time `json:"certificate_ends,omitzero"`
	// By is the replica that asked them; "": the reader's own command.
	By string `json:"by,omitempty"`
}

// Member is one member of the etcd cluster.
type Member struct {
	Name    string `json:"name,omitempty"`
	Address string `json:"address"` // at which it was asked
	// Down is why it did not answer; "" if it did.
	Down     string `json:"down,omitempty"`
	Version  string `json:"version,omitempty"`
	Learner  bool   `json:"learner,omitempty"`
	NoLeader bool   `json:"no_leader,omitempty"` // it knows of no leader: there is no quorum
	Size     int64  `json:"size,omitempty"`      // of its database, in bytes
	Used     int64  `json:"used,omitempty"`      // of Size; the rest waits for new data
	Quota    int64  `json:"quota,omitempty"`     // for Size; 0: it does not say
	Full     bool   `json:"full,omitempty"`      // it rejects writes because its space is used up
	Corrupt  bool   `json:"corrupt,omitempty"`   // its data differs from the other members'
	Remote   bool   `json:"remote,omitempty"`    // asked over a network
	Plain    bool   `json:"plain,omitempty"`     // asked without TLS
	// CertificateEnds is when the certificate that it showed ends.
	CertificateEnds time.Time `json:"certificate_ends,omitzero"`
}

// Title returns how people know the member.
func (m Member) Title() string {
	if m.Name != "" {
		return "etcd " + m.Name
	}
	return "etcd at " + m.Address
}
