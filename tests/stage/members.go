package stage

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Elsewhere is what the test itself brings to a stage.
type Elsewhere struct {
	Provider string // the socket at which it makes machines: there is no swarm
	// Agents is where agents find a replica that listens at an address, and Etcd where a replica
	// finds a member of etcd.
	Agents func(replica, address string) string
	Etcd   func(replica string, member int, address string) string
	// Peers is where a member of etcd is found by the others if it listens at an address. It speaks
	// to them from its MemberSource, which takes programs with wrong clocks.
	Peers func(member int, address string) string
	// Replica is what else a replica is started with.
	Replica func(id string) []string
	// Data is where a member of etcd keeps its data.
	Data func(member int) string
}

// raiseEtcd starts etcd's members.
func (s *Stage) raiseEtcd(members int) {
	s.T.Helper()
	var all []string
	for i := range members {
		s.Clients, s.listens = append(s.Clients, addresses.FreeAddress(s.T)),
			append(s.listens, addresses.FreeAddress(s.T))
		s.Peers = append(s.Peers, s.listens[i])
		if s.plan.Elsewhere != nil {
			s.Peers[i] = s.plan.Elsewhere.Peers(i, s.listens[i])
		}
		all = append(all, fmt.Sprintf("m%d=http://%s", i, s.Peers[i]))
	}
	s.cluster = strings.Join(all, ",")
	s.Etcd = make([]*Program, members)
	for i := range members {
		s.StartMember(i)
	}
	for _, m := range s.Etcd {
		s.AwaitReady(m)
	}
}

// StartMember starts a member of etcd on the data that is there.
func (s *Stage) StartMember(i int) {
	s.T.Helper()
	s.startMember(i, "-cluster", s.cluster)
}

// JoinMember starts a member of etcd that has no data, and that the others have taken in. cluster
// is all of them.
func (s *Stage) JoinMember(i int, cluster string) {
	s.T.Helper()
	s.startMember(i, "-cluster", cluster, "-existing")
}

func (s *Stage) startMember(i int, more ...string) {
	s.T.Helper()
	name := fmt.Sprintf("m%d", i)
	args := []string{"etcd", "-name", name, "-dir", s.Data(i), "-client", s.Clients[i], "-peer", s.listens[i]}
	if s.plan.Elsewhere != nil {
		args = append(args, "-advertise-peer", s.Peers[i], "-source", MemberSource(i))
	}
	s.Etcd[i] = s.cast(fmt.Sprintf("etcd-%s-%d", name, len(s.programs)), append(args, more...)...)
}

// MemberSource is the address from which a member of etcd speaks to others, where the test brings
// the ways between them.
func MemberSource(member int) string { return fmt.Sprintf("127.0.1.%d", member+1) }

// Data is where a member of etcd keeps its data.
func (s *Stage) Data(member int) string {
	if s.plan.Elsewhere != nil {
		return s.plan.Elsewhere.Data(member)
	}
	return filepath.Join(cmp.Or(s.plan.Disk, s.Dir), fmt.Sprintf("m%d", member))
}

// StartReplica starts a replica of the coordinator, where it listened before if it ever ran.
func (s *Stage) StartReplica(id string) {
	s.T.Helper()
	if s.Addresses[id] == "" {
		s.Addresses[id] = addresses.FreeAddress(s.T)
		s.gates[id] = s.Addresses[id]
		if s.plan.Elsewhere != nil {
			s.gates[id] = s.plan.Elsewhere.Agents(id, s.Addresses[id])
		}
		if s.plan.Network != nil {
			s.gates[id] = addresses.FreeAddress(s.T)
			s.relay("network-"+id, s.gates[id], s.Addresses[id], s.plan.Network...)
		}
	}
	endpoints := strings.Join(s.Clients, ",")
	if slices.Contains(s.plan.BehindRelay, id) {
		endpoints = s.relayed(id)
	}
	var more []string
	if s.plan.Elsewhere != nil {
		endpoints = s.elsewhere(id)
		more = s.plan.Elsewhere.Replica(id)
	}
	if s.plan.CallTimeout != 0 {
		more = append(more, "-call-timeout", s.plan.CallTimeout.String())
	}
	build := s.castProgram()
	if other := s.plan.Builds[id]; other != nil {
		build = other.Path("cast")
	}
	s.Replicas[id] = s.start(fmt.Sprintf("replica-%s-%d", id, len(s.programs)), build, append([]string{
		"coordinator", "-id", id, "-listen", s.Addresses[id], "-advertise", s.gates[id],
		"-endpoints", endpoints, "-swarm", s.socket(), "-pki", s.PKI, "-dir", s.Dir, "-session-ttl",
		sessionTTL.String(),
	}, more...)...)
}

// elsewhere is etcd as a replica reaches it by the test's own ways.
func (s *Stage) elsewhere(id string) string {
	if s.roadsToEtcd[id] == "" {
		var ways []string
		for i, client := range s.Clients {
			ways = append(ways, s.plan.Elsewhere.Etcd(id, i, client))
		}
		s.roadsToEtcd[id] = strings.Join(ways, ",")
	}
	return s.roadsToEtcd[id]
}

// relayed is etcd as a replica reaches it, through relays that can be stopped.
func (s *Stage) relayed(id string) string {
	var through []string
	for i, client := range s.Clients {
		name := fmt.Sprintf("way-%s-%d", id, i)
		from := addresses.FreeAddress(s.T)
		s.relay(name, from, client)
		through = append(through, from)
	}
	return strings.Join(through, ",")
}

func (s *Stage) relay(name, from, to string, flags ...string) {
	s.T.Helper()
	s.roads[name] = append([]string{"relay", "-from", from, "-to", to}, flags...)
	s.RelayAgain(name)
}

// RelayAgain starts a relay, where it was if it ever ran.
func (s *Stage) RelayAgain(name string) {
	s.T.Helper()
	s.Relays[name] = s.cast(fmt.Sprintf("%s-%d", name, len(s.programs)), s.roads[name]...)
	s.AwaitReady(s.Relays[name])
}

// Ways are the relays whose name begins so.
func (s *Stage) Ways(prefix string) []*Program {
	var out []*Program
	for name, p := range s.Relays {
		if strings.HasPrefix(name, prefix) {
			out = append(out, p)
		}
	}
	return out
}
