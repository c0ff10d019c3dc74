package dnsserver

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/leasehold/leasehold/coordinator/discovery"
)

const (
	// ttl is for how long an answer may be kept, found or not: a change is seen everywhere soon after.
	ttl = 5 * time.Second
	// maxUDP is the longest answer by UDP, whatever a client offers. Longer answers are fragmented,
	// and help attackers who spoof addresses (see dnsflagday.net/2020).
	maxUDP = 1232
	// The most records that are built for an answer, so that a query for a large group costs no more
	// than a query for a small group. More do not fit, except A by TCP.
	maxByUDP = 100
	maxByTCP = 2000
)

// directory is the part of discovery.Directory that answers come from.
type directory interface {
	Ready() bool
	Find(group string) (*discovery.Group, bool)
	Age() time.Duration
}

// zone answers for the names below one name.
type zone struct {
	name      string // in lower case, with the final dot
	directory directory
}

// answer returns the reply to a query.
func (z zone) answer(query *dns.Msg, udp bool) *dns.Msg {
	reply := new(dns.Msg).SetReply(query)
	reply.Authoritative = true
	offered := query.IsEdns0()
	if offered != nil {
		reply.SetEdns0(maxUDP, offered.Do())
	}
	switch {
	case query.Opcode != dns.OpcodeQuery:
		return refuse(reply, dns.RcodeNotImplemented)
	case len(query.Question) != 1:
		return refuse(reply, dns.RcodeFormatError)
	case offered != nil && offered.Version() != 0:
		return refuse(reply, dns.RcodeBadVers)
	}
	q := query.Question[0]
	name := strings.ToLower(q.Name)
	switch {
	case q.Qclass != dns.ClassINET || !dns.IsSubDomain(z.name, name),
		q.Qtype == dns.TypeAXFR || q.Qtype == dns.TypeIXFR: // clients cannot list all names
		return refuse(reply, dns.RcodeRefused)
	case !z.directory.Ready(): // not NXDOMAIN: a client would believe it
		explain(reply, dns.ExtendedErrorCodeNotReady, "this replica has not read the shard yet")
		return refuse(reply, dns.RcodeServerFailure)
	}
	most := maxByTCP
	if udp {
		most = maxByUDP
	}
	records := z.find(strings.TrimSuffix(strings.TrimSuffix(name, z.name), "."), q, most)
	reply.Answer, reply.Extra = records.answer, append(records.extra, reply.Extra...)
	switch {
	case records.withheld: // no NODATA either
		explain(reply, dns.ExtendedErrorCodeNotReady, "this replica does not know all instances: records are damaged")
		return refuse(reply, dns.RcodeServerFailure)
	case !records.exists:
		reply.Rcode = dns.RcodeNameError
		reply.Ns = []dns.RR{z.soa(z.name)}
	case len(records.answer) == 0:
		reply.Ns = []dns.RR{z.soa(z.name)}
	}
	if age := z.directory.Age(); age > discovery.StaleAfter {
		explain(reply, dns.ExtendedErrorCodeStaleAnswer, fmt.Sprintf("etcd last answered %s ago", age.Truncate(time.Second)))
	}
	fit(reply, size(offered, udp), len(records.extra), udp && records.more)
	return reply
}

// refuse ends an answer without records.
func refuse(reply *dns.Msg, code int) *dns.Msg {
	reply.Rcode, reply.Authoritative = code, false
	return reply
}

// explain adds an Extended DNS Error for clients that understand EDNS (RFC 8914).
func explain(reply *dns.Msg, code uint16, text string) {
	if opt := reply.IsEdns0(); opt != nil {
		opt.Option = append(opt.Option, &dns.EDNS0_EDE{InfoCode: code, ExtraText: text})
	}
}

// size returns the longest answer that a client takes.
func size(offered *dns.OPT, udp bool) int {
	switch {
	case !udp:
		return dns.MaxMsgSize
	case offered == nil:
		return dns.MinMsgSize
	}
	return min(max(int(offered.UDPSize()), dns.MinMsgSize), maxUDP)
}

// fit shortens a reply to what its client accepts. Additional addresses are dropped first, without
// a mark (RFC 2181, section 9). If answers are dropped too, a UDP reply is marked as truncated, so
// that the client retries by TCP; over TCP, each reply has as much as fits, and a different part of
// the whole.
func fit(reply *dns.Msg, size, extras int, cut bool) {
	reply.Compress = true
	if extras > 0 && reply.Len() > size {
		reply.Extra = reply.Extra[extras:]
	}
	if reply.Len() > size {
		reply.Truncate(size)
		reply.Truncated = size < dns.MaxMsgSize
	}
	reply.Truncated = reply.Truncated || cut
}

// records is a zone's answer to a question.
type records struct {
	exists bool // the name exists, perhaps only with other types
	answer []dns.RR
	extra  []dns.RR // addresses of the names in answer
	more   bool     // there are more than were asked for
	// withheld: the group exists, and this replica does not know all of its instances
	withheld bool

	given map[given]bool // what the answer has: instances of one host share its address
}

// given is what tells the records of one answer apart. A set of records has none twice (RFC 2181,
// section 5).
type given struct {
	address netip.Addr
	target  string
	port    uint16
}

// first reports whether the answer does not have this yet.
func (r *records) first(g given) bool {
	if r.given[g] {
		return false
	}
	if r.given == nil {
		r.given = map[given]bool{}
	}
	r.given[g] = true
	return true
}

// find looks up a name below the zone's, which may be empty:
//
//	GROUP                  the addresses of a group's instances, and by SRV their ports
//	INSTANCE.GROUP         the same of one instance
//	_GROUP._tcp            SRV as of GROUP, in the form of RFC 2782
//	_PORT._tcp.GROUP       SRV with this port, for instances whose port the provider does not tell
func (z zone) find(below string, q dns.Question, most int) records {
	var labels []string
	if below != "" {
		labels = strings.Split(below, ".")
	}
	asks := asks{zone: z, q: q, most: most}
	switch {
	case len(labels) == 0:
		if q.Qtype == dns.TypeSOA {
			return records{exists: true, answer: []dns.RR{z.soa(q.Name)}}
		}
		return records{exists: true}
	case len(labels) == 1 && labels[0] == "_tcp":
		return records{exists: true} // names are below it
	case len(labels) == 2 && labels[1] == "_tcp":
		group, ok := strings.CutPrefix(labels[0], "_")
		return asks.ofGroup(group, ok, true)
	case len(labels) == 2 && labels[0] == "_tcp":
		_, there := z.directory.Find(labels[1])
		return records{exists: there}
	case len(labels) == 3 && labels[1] == "_tcp":
		text, ok := strings.CutPrefix(labels[0], "_")
		port, err := strconv.ParseUint(text, 10, 16)
		asks.port = uint16(port)
		return asks.ofGroup(labels[2], ok && err == nil && port > 0 && text[0] != '0', true)
	case len(labels) == 1:
		return asks.ofGroup(labels[0], true, false)
	case len(labels) == 2:
		return asks.ofInstance(labels[0], labels[1])
	}
	return records{}
}

// asks is a question for instances.
type asks struct {
	zone zone
	q    dns.Question
	port uint16 // instead of the instances' own; 0: their own
	most int
}

// ofGroup answers with all instances of a group. The first one is random for each answer, so that
// clients that use the first record, and answers that do not hold all, are spread over them.
func (a asks) ofGroup(name string, valid, service bool) records {
	g, there := a.zone.directory.Find(name)
	if !there || !valid {
		return records{}
	}
	out := records{exists: true, withheld: g.Withheld}
	if service && a.q.Qtype != dns.TypeSRV && a.q.Qtype != dns.TypeANY {
		return out
	}
	n := len(g.Endpoints)
	if n == 0 {
		return out
	}
	first := rand.IntN(n)
	for i := range n {
		if len(out.answer) >= a.most {
			out.more = true
			break
		}
		a.add(&out, g.Endpoints[(first+i)%n])
	}
	return out
}

func (a asks) ofInstance(id, group string) records {
	g, there := a.zone.directory.Find(group)
	if !there || g.Withheld {
		return records{withheld: there}
	}
	for _, e := range g.Endpoints {
		if e.Instance != id {
			continue
		}
		out := records{exists: true}
		if host, named := hostName(e); named {
			out.answer = []dns.RR{&dns.CNAME{Hdr: header(a.q.Name, dns.TypeCNAME), Target: host}}
			return out
		}
		a.add(&out, e)
		return out
	}
	return records{}
}

// add adds an instance's records of the requested type.
func (a asks) add(out *records, e discovery.Endpoint) {
	at, numeric := e.IP()
	switch a.q.Qtype {
	case dns.TypeA, dns.TypeAAAA:
		rr := address(a.q.Name, at, numeric)
		if rr != nil && rr.Header().Rrtype == a.q.Qtype && out.first(given{address: at.Addr()}) {
			out.answer = append(out.answer, rr)
		}
	case dns.TypeANY: // one kind of record is enough (RFC 8482)
		if rr := address(a.q.Name, at, numeric); rr != nil && len(out.answer) == 0 {
			out.answer = append(out.answer, rr)
		}
	case dns.TypeSRV:
		_, port := e.HostPort()
		if a.port != 0 {
			port = a.port
		}
		target, named := hostName(e)
		switch {
		case port == 0 || !numeric && !named: // not an address that a record can hold
			return
		case named && !out.first(given{target: target, port: port}):
			return
		case numeric:
			target = e.Instance + "." + e.Group + "." + a.zone.name
			out.extra = append(out.extra, address(target, at, true))
		}
		out.answer = append(out.answer, &dns.SRV{
			Hdr: header(a.q.Name, dns.TypeSRV), Weight: 1, Port: port, Target: target,
		})
	}
}

// hostName returns the name at which an instance is reached, if its provider gives one.
func hostName(e discovery.Endpoint) (string, bool) {
	if _, numeric := e.IP(); numeric {
		return "", false
	}
	host, _ := e.HostPort()
	if _, valid := dns.IsDomainName(host); !valid || host == "" || strings.ContainsAny(host, ":%/ \t") {
		return "", false
	}
	return dns.Fqdn(host), true
}

// address returns the record of an address; nil: there is none.
func address(owner string, at netip.AddrPort, numeric bool) dns.RR {
	switch {
	case !numeric:
		return nil
	case at.Addr().Is4():
		return &dns.A{Hdr: header(owner, dns.TypeA), A: at.Addr().AsSlice()}
	}
	return &dns.AAAA{Hdr: header(owner, dns.TypeAAAA), AAAA: at.Addr().AsSlice()}
}

// soa returns the zone's start of authority. Negative answers may be cached for its Minttl.
func (z zone) soa(owner string) dns.RR {
	seconds := uint32(ttl / time.Second)
	return &dns.SOA{
		Hdr: header(owner, dns.TypeSOA), Ns: z.name, Mbox: "hostmaster." + z.name,
		Serial: 1, Refresh: seconds, Retry: seconds, Expire: 60 * seconds, Minttl: seconds,
	}
}

func header(owner string, kind uint16) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: kind, Class: dns.ClassINET, Ttl: uint32(ttl / time.Second)}
}
