package dnsserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/leasehold/leasehold/coordinator/discovery"
)

// known is a directory that says what a test has it say.
type known struct {
	groups map[string][]discovery.Endpoint
	age    time.Duration
}

func (k known) Ready() bool        { return k.groups != nil }
func (k known) Age() time.Duration { return k.age }

func (k known) Find(name string) (*discovery.Group, bool) {
	all, there := k.groups[name]
	return &discovery.Group{Name: name, Endpoints: all, Withheld: name == "torn"}, there
}

func at(group, id, address string) discovery.Endpoint {
	return discovery.Endpoint{Group: group, Instance: id, Address: address}
}

// some is a shard with a few groups.
var some = known{groups: map[string][]discovery.Endpoint{
	"web":   {at("web", "web-0-a", "10.0.0.1:8080"), at("web", "web-1-b", "10.0.0.2:8081")},
	"six":   {at("six", "six-0-a", "[fd00::1]:80"), at("six", "six-1-b", "10.0.0.3:80")},
	"bare":  {at("bare", "bare-0-a", "10.0.0.4")},
	"named": {at("named", "named-0-a", "db.example:5432")},
	"odd":   {at("odd", "odd-0-a", "fe80::1%eth0"), at("odd", "odd-1-b", "a b")},
	"dense": {
		at("dense", "dense-0-a", "10.0.0.5:1"), at("dense", "dense-1-b", "10.0.0.5:2"),
		at("dense", "dense-2-c", "10.0.0.6:1"),
	},
	"twin":  {at("twin", "twin-0-a", "db.example:1"), at("twin", "twin-1-b", "db.example:1")},
	"empty": {},
	"torn":  {}, // withheld
}}

func ask(name string, kind uint16) *dns.Msg { return new(dns.Msg).SetQuestion(name, kind) }

// told returns an answer in one line: its code, its records in order, and the addresses that come
// along.
func told(m *dns.Msg) string {
	line := func(rrs []dns.RR) string {
		var all []string
		for _, rr := range rrs {
			if rr.Header().Rrtype != dns.TypeOPT {
				all = append(all, strings.Join(strings.Fields(rr.String()), " "))
			}
		}
		slices.Sort(all)
		return strings.Join(all, "; ")
	}
	out := dns.RcodeToString[m.Rcode]
	for _, part := range [][]dns.RR{m.Answer, m.Extra} {
		if text := line(part); text != "" {
			out += " | " + text
		}
	}
	if len(m.Ns) == 1 && m.Ns[0].Header().Rrtype == dns.TypeSOA {
		out += " | SOA"
	}
	return out
}

// proves LB-4
func TestNamesAreAnswered(t *testing.T) {
	z := zone{name: "main.leasehold.", directory: some}
	for _, test := range []struct {
		name string
		kind uint16
		want string
	}{
		{"web.main.leasehold.", dns.TypeA, "NOERROR | web.main.leasehold. 5 IN A 10.0.0.1; web.main.leasehold. " +
			"5 IN A 10.0.0.2"},
		{"WeB.mAIN.LeaseHold.", dns.TypeA, "NOERROR | WeB.mAIN.LeaseHold. 5 IN A 10.0.0.1; WeB.mAIN.LeaseHold. " +
			"5 IN A 10.0.0.2"},
		{"web.main.leasehold.", dns.TypeAAAA, "NOERROR | SOA"},
		{"web.main.leasehold.", dns.TypeTXT, "NOERROR | SOA"},
		{"six.main.leasehold.", dns.TypeAAAA, "NOERROR | six.main.leasehold. 5 IN AAAA fd00::1"},
		{"six.main.leasehold.", dns.TypeA, "NOERROR | six.main.leasehold. 5 IN A 10.0.0.3"},
		{
			"web.main.leasehold.", dns.TypeSRV,
			"NOERROR | web.main.leasehold. 5 IN SRV 0 1 8080 web-0-a.web.main.leasehold.; web.main.leasehold. " +
				"5 IN SRV 0 1 8081 web-1-b.web.main.leasehold. | web-0-a.web.main.leasehold. " +
				"5 IN A 10.0.0.1; web-1-b.web.main.leasehold. 5 IN A 10.0.0.2",
		},
		{
			"_six._tcp.main.leasehold.", dns.TypeSRV,
			"NOERROR | _six._tcp.main.leasehold. 5 IN SRV 0 1 80 six-0-a.six.main.leasehold.; _six._tcp.main.leasehold. " +
				"5 IN SRV 0 1 80 six-1-b.six.main.leasehold. | six-0-a.six.main.leasehold. 5 IN AAAA fd00::1; " +
				"six-1-b.six.main.leasehold. 5 IN A 10.0.0.3",
		},
		{
			"_9100._tcp.bare.main.leasehold.", dns.TypeSRV,
			"NOERROR | _9100._tcp.bare.main.leasehold. 5 IN SRV 0 1 9100 bare-0-a.bare.main.leasehold. " +
				"| bare-0-a.bare.main.leasehold. 5 IN A 10.0.0.4",
		},
		{"bare.main.leasehold.", dns.TypeSRV, "NOERROR | SOA"}, // its port is not known
		{"bare.main.leasehold.", dns.TypeANY, "NOERROR | bare.main.leasehold. 5 IN A 10.0.0.4"},
		{"web-1-b.web.main.leasehold.", dns.TypeA, "NOERROR | web-1-b.web.main.leasehold. 5 IN A 10.0.0.2"},
		{"web-1-b.web.main.leasehold.", dns.TypeAAAA, "NOERROR | SOA"},
		{"web-9-z.web.main.leasehold.", dns.TypeA, "NXDOMAIN | SOA"},
		{"web-1-b.six.main.leasehold.", dns.TypeA, "NXDOMAIN | SOA"},
		{"named.main.leasehold.", dns.TypeA, "NOERROR | SOA"},
		{"named.main.leasehold.", dns.TypeSRV, "NOERROR | named.main.leasehold. 5 IN SRV 0 1 5432 db.example."},
		{"named-0-a.named.main.leasehold.", dns.TypeA, "NOERROR | named-0-a.named.main.leasehold. 5 IN CNAME db.example."},
		{"dense.main.leasehold.", dns.TypeA, "NOERROR | dense.main.leasehold. 5 IN A 10.0.0.5; dense.main.leasehold. " +
			"5 IN A 10.0.0.6"},
		{"twin.main.leasehold.", dns.TypeSRV, "NOERROR | twin.main.leasehold. 5 IN SRV 0 1 1 db.example."},
		{"odd.main.leasehold.", dns.TypeAAAA, "NOERROR | SOA"},
		{"odd.main.leasehold.", dns.TypeSRV, "NOERROR | SOA"},
		{"odd-1-b.odd.main.leasehold.", dns.TypeA, "NOERROR | SOA"},
		{"empty.main.leasehold.", dns.TypeA, "NOERROR | SOA"},
		{"empty.main.leasehold.", dns.TypeANY, "NOERROR | SOA"},
		{"nosuch.main.leasehold.", dns.TypeA, "NXDOMAIN | SOA"},
		{"torn.main.leasehold.", dns.TypeA, "SERVFAIL"},
		{"_torn._tcp.main.leasehold.", dns.TypeSRV, "SERVFAIL"},
		{"torn-0-a.torn.main.leasehold.", dns.TypeA, "SERVFAIL"},
		{"_nosuch._tcp.main.leasehold.", dns.TypeSRV, "NXDOMAIN | SOA"},
		{"_web._tcp.main.leasehold.", dns.TypeA, "NOERROR | SOA"},
		{"web._tcp.main.leasehold.", dns.TypeSRV, "NXDOMAIN | SOA"},
		{"_web._udp.main.leasehold.", dns.TypeSRV, "NXDOMAIN | SOA"},
		{"_0._tcp.web.main.leasehold.", dns.TypeSRV, "NXDOMAIN | SOA"},
		{"_080._tcp.web.main.leasehold.", dns.TypeSRV, "NXDOMAIN | SOA"},
		{"_65536._tcp.web.main.leasehold.", dns.TypeSRV, "NXDOMAIN | SOA"},
		{"_grpclb._tcp.web.main.leasehold.", dns.TypeSRV, "NXDOMAIN | SOA"},
		{"_tcp.main.leasehold.", dns.TypeA, "NOERROR | SOA"}, // names are below it
		{"_tcp.web.main.leasehold.", dns.TypeA, "NOERROR | SOA"},
		{"_tcp.nosuch.main.leasehold.", dns.TypeA, "NXDOMAIN | SOA"},
		{"a.b.c.d.main.leasehold.", dns.TypeA, "NXDOMAIN | SOA"},
		{"main.leasehold.", dns.TypeA, "NOERROR | SOA"},
		{"main.leasehold.", dns.TypeSOA, "NOERROR | main.leasehold. 5 IN SOA main.leasehold. hostmaster.main.leasehold. " +
			"1 5 5 300 5"},
		{"main.leasehold.", dns.TypeAXFR, "REFUSED"},
		{"main.leasehold.", dns.TypeIXFR, "REFUSED"},
		{"example.com.", dns.TypeA, "REFUSED"},
		{"other.leasehold.", dns.TypeA, "REFUSED"},
		{"domain.leasehold.", dns.TypeA, "REFUSED"}, // ends like the zone, and is not below it
		{".", dns.TypeNS, "REFUSED"},
	} {
		got := z.answer(ask(test.name, test.kind), true)
		if told(got) != test.want {
			t.Errorf("%s %s:\n got %s\nwant %s", test.name, dns.TypeToString[test.kind], told(got), test.want)
		}
		refused := got.Rcode == dns.RcodeRefused || got.Rcode == dns.RcodeServerFailure
		if got.Authoritative == refused || got.RecursionAvailable || !got.Response {
			t.Errorf("%s: header %+v", test.name, got.MsgHdr)
		}
	}
}

func TestQueriesThatAreNone(t *testing.T) {
	z := zone{name: "main.leasehold.", directory: some}
	chaos := ask("version.bind.", dns.TypeTXT)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	update := ask("main.leasehold.", dns.TypeSOA)
	update.Opcode = dns.OpcodeUpdate
	newer := ask("web.main.leasehold.", dns.TypeA).SetEdns0(1232, false)
	newer.IsEdns0().SetVersion(1)
	for code, query := range map[int]*dns.Msg{
		dns.RcodeRefused: chaos, dns.RcodeNotImplemented: update, dns.RcodeBadVers: newer, dns.RcodeFormatError: new(dns.Msg),
	} {
		if got := z.answer(query, true); got.Rcode != code || len(got.Answer) > 0 {
			t.Errorf("%s: %s", dns.RcodeToString[code], told(got))
		}
	}
}

// reasons returns the Extended DNS Errors of an answer.
func reasons(m *dns.Msg) string {
	var all []string
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				all = append(all, fmt.Sprintf("%d %s", e.InfoCode, e.ExtraText))
			}
		}
	}
	return strings.Join(all, "; ")
}

// proves LB-4, SAFE-18: what was so last is answered while etcd is away, with its age; and a
// replica that knows nothing says so, instead of that nothing is there
func TestOldAndMissingPicture(t *testing.T) {
	old := some
	old.age = 90*time.Second + 1
	got := zone{name: "main.leasehold.", directory: old}.answer(ask("bare.main.leasehold.", dns.TypeA).SetEdns0(1232,
		true), true)
	if told(got) != "NOERROR | bare.main.leasehold. 5 IN A 10.0.0.4" || reasons(got) != "3 etcd last answered 1m30s ago" ||
		!got.IsEdns0().Do() {
		t.Errorf("old: %s", got)
	}
	got = zone{name: "main.leasehold.", directory: some}.answer(ask("bare.main.leasehold.", dns.TypeA).SetEdns0(1232,
		false), true)
	if reasons(got) != "" {
		t.Errorf("fresh: %s", got)
	}
	got = zone{name: "main.leasehold.", directory: old}.answer(ask("bare.main.leasehold.", dns.TypeA), true)
	if got.IsEdns0() != nil { // a client that did not ask may not understand it
		t.Errorf("without EDNS: %s", got)
	}
	got = zone{name: "main.leasehold.", directory: known{}}.answer(ask("web.main.leasehold.", dns.TypeA).SetEdns0(1232,
		false), true)
	if told(got) != "SERVFAIL" || !strings.HasPrefix(reasons(got), "14 ") {
		t.Errorf("nothing read: %s", got)
	}
}

// many returns a group of so many instances.
func many(n int) known {
	var all []discovery.Endpoint
	for i := range n {
		all = append(all, at("big", fmt.Sprintf("big-%d-aaaaaa", i), fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&255, i&255)))
	}
	return known{groups: map[string][]discovery.Endpoint{"big": all}}
}

// proves LB-4: an answer fits, whatever its client takes; by UDP it says that there is more
func TestAnswersFit(t *testing.T) {
	for _, test := range []struct {
		instances int
		kind      uint16
		udp       bool
		offered   uint16 // 0: no EDNS
		most      int    // bytes
		answers   int    // at least
		truncated bool
		extra     bool
	}{
		{20, dns.TypeA, true, 0, 512, 20, false, false},
		{100, dns.TypeA, true, 0, 512, 25, true, false},
		{70, dns.TypeA, true, 4096, 1232, 70, false, false},
		{100, dns.TypeA, true, 100, 512, 25, true, false},
		{100, dns.TypeA, true, 65535, 1232, 70, true, false},
		{20000, dns.TypeA, true, 1232, 1232, 70, true, false},
		{8, dns.TypeSRV, true, 0, 512, 8, false, false}, // the addresses stay away, and all instances are there
		{8, dns.TypeSRV, true, 1232, 1232, 8, false, true},
		{20, dns.TypeSRV, true, 1232, 1232, 20, false, false},
		{100, dns.TypeSRV, true, 1232, 1232, 15, true, false},
		{100, dns.TypeSRV, false, 0, 65535, 100, false, true},
		{500, dns.TypeSRV, false, 0, 65535, 500, false, true},
		{20000, dns.TypeSRV, false, 0, 65535, 900, false, false},
		{1000, dns.TypeA, false, 1232, 65535, 1000, false, false},
		{20000, dns.TypeA, false, 1232, 65535, 1000, false, false},
	} {
		z := zone{name: "main.leasehold.", directory: many(test.instances)}
		query := ask("big.main.leasehold.", test.kind)
		if test.offered > 0 {
			query.SetEdns0(test.offered, false)
		}
		name := fmt.Sprintf("%d %s udp %t offered %d", test.instances, dns.TypeToString[test.kind], test.udp, test.offered)
		reply := z.answer(query, test.udp)
		wire, err := reply.Pack()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		extras := len(reply.Extra)
		if reply.IsEdns0() != nil {
			extras--
		}
		if len(wire) > test.most || len(reply.Answer) < test.answers || reply.Truncated != test.truncated ||
			(extras > 0) != test.extra || (reply.IsEdns0() != nil) != (test.offered > 0) {
			t.Errorf("%s: %d bytes, %d answers, %d beside, truncated %t", name, len(wire), len(reply.Answer), extras,
				reply.Truncated)
		}
		one := map[string]bool{}
		for _, rr := range reply.Answer {
			one[rr.String()] = true
		}
		if len(one) != len(reply.Answer) {
			t.Errorf("%s: an instance is there twice", name)
		}
	}
}

// Each instance of a group that no answer can hold is in some answer.
func TestLargeGroupsAreSpread(t *testing.T) {
	z := zone{name: "main.leasehold.", directory: many(300)}
	seen, first := map[string]bool{}, map[string]bool{}
	for range 1000 { // 70 of 300 each: that one stays away by chance does not happen in the life of the sun
		reply := z.answer(ask("big.main.leasehold.", dns.TypeA).SetEdns0(1232, false), true)
		for _, rr := range reply.Answer {
			seen[rr.String()] = true
		}
		first[reply.Answer[0].String()] = true
	}
	if len(seen) != 300 || len(first) < 100 {
		t.Errorf("%d of 300 instances were in an answer, %d were first", len(seen), len(first))
	}
}

// FuzzAnswer has an answer made for whatever parses as a query.
func FuzzAnswer(f *testing.F) {
	for _, q := range []*dns.Msg{ask("_80._tcp.web.main.leasehold.", dns.TypeSRV), ask(`a\.b.web.main.leasehold.`,
		dns.TypeA), ask(".", dns.TypeANY)} {
		wire, err := q.SetEdns0(600, true).Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire, true)
	}
	f.Fuzz(func(t *testing.T, wire []byte, udp bool) {
		query := new(dns.Msg)
		if query.Unpack(wire) != nil || query.Response {
			return
		}
		reply := zone{name: "main.leasehold.", directory: some}.answer(query, udp)
		out, err := reply.Pack()
		if err != nil {
			t.Fatalf("%s\nfor %s: %v", reply, query, err)
		}
		if limit := size(query.IsEdns0(), udp); len(out) > limit {
			t.Fatalf("%d bytes for %s, which takes %d", len(out), query, limit)
		}
	})
}
