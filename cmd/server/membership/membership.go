package membership

import (
	"fmt"
	"net/url"
	"strings"
)

// Most is how many members a cluster may have: more would make writes slower and nothing safer.
const Most = 5

// Member is one of etcd's members, and whether it answers.
type Member struct {
	ID      uint64
	Name    string // "": it was added and has never started
	Peer    string // URL for other members
	Client  string // URL for clients
	Learner bool
	Answers bool
	// Behind: a learner that has not caught up, or of which that is not known.
	Behind bool
}

// Label names a member for people. Until it has started it is known by its address.
func (m Member) Label() string {
	if m.Name != "" {
		return m.Name
	}
	if at, err := url.Parse(m.Peer); err == nil && at.Hostname() != "" {
		return at.Hostname()
	}
	return m.Peer
}

// Majority is how many of so many voting members must agree.
func Majority(voters int) int { return voters/2 + 1 }

// Cluster are all members.
type Cluster []Member

// Voters are the members that count for a majority.
func (c Cluster) Voters() (out Cluster) {
	for _, m := range c {
		if !m.Learner {
			out = append(out, m)
		}
	}
	return out
}

// Answering are those that answer.
func (c Cluster) Answering() (out Cluster) {
	for _, m := range c {
		if m.Answers {
			out = append(out, m)
		}
	}
	return out
}

// Silent are those that do not.
func (c Cluster) Silent() (out Cluster) {
	for _, m := range c {
		if !m.Answers {
			out = append(out, m)
		}
	}
	return out
}

// Named returns the member of this name.
func (c Cluster) Named(name string) (Member, bool) {
	for _, m := range c {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// Find returns the member that a person means: by its name, by its URL, or by its address if it has
// never started.
func (c Cluster) Find(name string) (Member, bool) {
	if m, there := c.Named(name); there && name != "" {
		return m, true
	}
	for _, m := range c {
		if name != "" && (m.Peer == name || m.Name == "" && m.Label() == name) {
			return m, true
		}
	}
	return Member{}, false
}

// At returns the member that others reach at this URL.
func (c Cluster) At(peer string) (Member, bool) {
	for _, m := range c {
		if m.Peer == peer {
			return m, true
		}
	}
	return Member{}, false
}

// Labels lists members for people: "a, b and c".
func (c Cluster) Labels() string {
	var names []string
	for _, m := range c {
		names = append(names, m.Label())
	}
	switch n := len(names); n {
	case 0:
		return "none"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// without is the cluster after a removal.
func (c Cluster) without(id uint64) (out Cluster) {
	for _, m := range c {
		if m.ID != id {
			out = append(out, m)
		}
	}
	return out
}

// HasQuorum reports whether a majority of the voting members answers.
func (c Cluster) HasQuorum() bool {
	voters := c.Voters()
	return len(voters) > 0 && len(voters.Answering()) >= Majority(len(voters))
}

// NoQuorum says who is missing, "" with a quorum.
func (c Cluster) NoQuorum() string {
	if c.HasQuorum() {
		return ""
	}
	voters := c.Voters()
	do := "do"
	if len(voters.Silent()) == 1 {
		do = "does"
	}
	return fmt.Sprintf("no quorum: %s %s not answer: %d of %d members must", voters.Silent().Labels(), do,
		Majority(len(voters)), len(voters))
}

// Refusal is why a change is not made.
type Refusal struct {
	What string
	Next string // what to do first
	Busy bool   // another host is being added: this passes
}

func (r *Refusal) Error() string { return r.What }

func refuse(next, format string, args ...any) *Refusal {
	return &Refusal{What: fmt.Sprintf(format, args...), Next: next}
}

// lost is the refusal of any change without a quorum.
func (c Cluster) lost() *Refusal {
	if why := c.NoQuorum(); why != "" {
		return refuse("start leasehold server on the hosts that do not answer", "%s", why)
	}
	return nil
}

// MayAdd returns why no learner of this name and peer URL may be added, or nil.
func (c Cluster) MayAdd(name, peer string) *Refusal {
	if r := c.lost(); r != nil {
		return r
	}
	if m, there := c.Named(name); there {
		if m.Answers {
			return refuse("choose another name", "%s: is in the cluster already, and answers", name)
		}
		return refuse("leasehold server replace "+name, "%s: is in the cluster already, and does not answer", name)
	}
	if m, there := c.At(peer); there && m.Name != "" {
		return refuse("choose another --address or --peer-port", "%s: is the address of %s", peer, m.Name)
	}
	if n := len(c.Voters()); n >= Most {
		return refuse("leasehold server remove NAME first", "the cluster has %d members, which is the most", n)
	}
	for _, m := range c {
		if m.Learner && m.Peer != peer {
			r := refuse("wait until it votes; if it is lost for good: leasehold server remove "+m.Label(),
				"%s is being added: hosts are added one after the other", m.Label())
			r.Busy = true
			return r
		}
	}
	return nil
}

// MayPromote returns why a learner may not become a voting member now, or nil.
func (c Cluster) MayPromote(id uint64) *Refusal {
	if r := c.lost(); r != nil {
		return r
	}
	for _, m := range c {
		switch {
		case m.ID != id:
		case !m.Learner:
			return refuse("leasehold server list", "%s: is no learner", m.Label())
		case !m.Answers:
			return refuse("start leasehold server on it", "%s: does not answer", m.Label())
		case m.Behind:
			return refuse("wait", "%s: has not caught up yet", m.Label())
		default:
			return nil
		}
	}
	return refuse("leasehold server list", "no member has the ID %x", id)
}

// MayRemove returns why a member may not be removed now, or nil.
func (c Cluster) MayRemove(name string) *Refusal {
	m, there := c.Find(name)
	if !there {
		return refuse("leasehold server list", "%s: is not in the cluster, which has %s", name, c.Labels())
	}
	if r := c.lost(); r != nil {
		return r
	}
	if m.Learner {
		return nil
	}
	rest := c.without(m.ID).Voters()
	switch {
	case len(rest) == 0:
		return refuse("stop leasehold server on it; the shard ends with it", "%s: is the last member", m.Label())
	case !rest.hasMajority():
		silent := rest.Silent()[0].Label()
		return refuse(fmt.Sprintf("start leasehold server on %s again; if it is gone for good: leasehold server replace %s",
			silent, silent),
			"%s: without it there would be no quorum: %s would not answer, and %d of the %d left must", m.Label(),
			rest.Silent().Labels(), Majority(len(rest)), len(rest))
	}
	return nil
}

func (c Cluster) hasMajority() bool { return len(c.Answering()) >= Majority(len(c)) }

// MayReplace returns why a host that lost its data may not be removed, to join again, or nil.
func (c Cluster) MayReplace(name string) *Refusal {
	if r := c.MayRemove(name); r != nil {
		return r
	}
	if m, _ := c.Find(name); m.Answers {
		return refuse("leasehold server add NEW, then: leasehold server remove "+name,
			"%s: answers: it has its data, and needs no replacement", name)
	}
	return nil
}

// Advice is what makes a cluster safer, "" if nothing does.
func (c Cluster) Advice() string {
	switch n := len(c.Voters()); {
	case n == 1:
		return "one member: if its host is lost, so is the shard; leasehold server add NAME, twice, makes it bear the loss " +
			"of one"
	case n%2 == 0:
		return fmt.Sprintf("%d members tolerate no more losses than %d: leasehold server add NAME", n, n-1)
	default:
		return ""
	}
}
