package stage

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Elsewhere is what the test provides in place of the stage.
type Elsewhere struct {
	Provider string // the socket of its provider: there is no swarm
	// Agents returns the address at which agents find a replica that listens at the given one, and
	// Etcd the address at which a replica finds a member of etcd.
	Agents func(replica, address string) string
	Etcd   func(replica string, member int, address string) string
	// Peers returns the address at which the other members find a member of etcd that listens at
	// the given one. The member connects to them from its MemberSource, which requires programs
	// with wrong clocks.
	Peers func(member int, address string) string
	// Replica returns further arguments of a replica.
	Replica func(id string) []string
	// Host opens the ways to a host: for each of its ports, from the address at which others find it
	// to the one at which it listens. It connects from its HostSource, and its member from its
	// MemberSource.
	Host func(i int, id string, ports [3]string, listens, found string)
	// Data returns the data directory of a member of etcd.
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

// StartMember starts a member of etcd on its existing data.
func (s *Stage) StartMember(i int) {
	s.T.Helper()
	s.startMember(i, "-cluster", s.cluster)
}

// JoinMember starts a member of etcd without data that the others have added. cluster lists all
// members.
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

// MemberSource is the address from which a member of etcd connects to others, if the test provides
// the network.
func MemberSource(member int) string { return fmt.Sprintf("127.0.1.%d", member+1) }

// Data returns the data directory of a member of etcd.
func (s *Stage) Data(member int) string {
	if s.plan.Elsewhere != nil {
		return s.plan.Elsewhere.Data(member)
	}
	return filepath.Join(cmp.Or(s.plan.Disk, s.Dir), fmt.Sprintf("m%d", member))
}

// StartReplica starts a replica of the coordinator, at its previous address if it ran before.
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
		s.plan.SessionTTL.String(),
	}, more...)...)
}

// elsewhere returns etcd's addresses for a replica in the test's own network.
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

// relayed returns etcd's addresses for a replica, through relays that can be stopped.
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

// RelayAgain starts a relay, at its previous address if it ran before.
func (s *Stage) RelayAgain(name string) {
	s.T.Helper()
	s.Relays[name] = s.cast(fmt.Sprintf("%s-%d", name, len(s.programs)), s.roads[name]...)
	s.AwaitReady(s.Relays[name])
}

// Ways returns the relays whose name has the prefix.
func (s *Stage) Ways(prefix string) []*Program {
	var out []*Program
	for name, p := range s.Relays {
		if strings.HasPrefix(name, prefix) {
			out = append(out, p)
		}
	}
	return out
}
