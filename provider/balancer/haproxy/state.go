package haproxy

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
)

// server is one server of a backend.
type server struct {
	name        string
	address     string
	port        int
	weight      int
	configured  int // the weight before any command changed it; 0: an agent of HAProxy sets weights
	maintenance bool
	drain       bool
	running     bool
	checked     bool // its checks are enabled
	checkable   bool // it has checks, enabled or disabled
	health      int  // counts from 0 to rise+fall-1; from rise on it is up
	rise, fall  int
	connections int
	why         string // HAProxy's words for its status and its last check
}

// Bits of srv_admin_state and srv_check_state, with the names of HAProxy's management guide.
// Maintenance may be forced, inherited, or caused by name resolution; a drain may be forced or
// inherited.
const (
	adminMaintenance = 0x01 | 0x02 | 0x20 | 0x40
	adminDrain       = 0x08 | 0x10
	checkConfigured  = 0x02
	checkEnabled     = 0x04
	stateStopped     = 0
)

// stateVersion is the supported version of "show servers state".
const stateVersion = "1"

// errChanged: a server was added or removed between two commands.
var errChanged = errors.New("the servers changed while they were read")

// servers reads all servers of the backend.
func (b *Balancer) servers(ctx context.Context, t *target) ([]server, error) {
	for tries := 3; ; tries-- {
		found, err := b.read(ctx, t)
		if !errors.Is(err, errChanged) || tries == 1 {
			return found, err
		}
	}
}

func (b *Balancer) read(ctx context.Context, t *target) ([]server, error) {
	text, err := t.ask(ctx, "show servers state "+b.backend)
	if err != nil {
		return nil, err
	}
	found, err := readState(text, b.backend)
	if err != nil {
		return nil, fmt.Errorf("read the state of the servers: %w", err)
	}
	if text, err = t.ask(ctx, "show stat "+b.backend+" 4 -1"); err != nil {
		return nil, err
	}
	if err := readStatistics(text, b.backend, found); err != nil {
		return nil, fmt.Errorf("read the statistics of the servers: %w", err)
	}
	return found, nil
}

// noBackend returns the error of a backend that HAProxy does not have.
func noBackend(backend string) error {
	return balancer.Errorf(provider.Invalid, "backend "+backend,
		"HAProxy has no such backend: name one of its configuration")
}

// whole returns the lines of an answer. HAProxy ends each answer with an empty line.
func whole(text string) ([]string, error) {
	body, ok := strings.CutSuffix(text, "\n\n")
	if !ok {
		return nil, errors.New("the answer was cut off")
	}
	return strings.Split(body, "\n"), nil
}

// readState reads "show servers state BACKEND": a version, names of fields, and a line for each
// server.
func readState(text, backend string) ([]server, error) {
	if strings.HasPrefix(text, "Can't find backend") {
		return nil, noBackend(backend)
	}
	lines, err := whole(text)
	if err != nil {
		return nil, err
	}
	if lines[0] != stateVersion || len(lines) < 2 {
		return nil, fmt.Errorf("the answer begins with %q, not with version %s", quoted(lines[0]), stateVersion)
	}
	names, ok := strings.CutPrefix(lines[1], "# ")
	if !ok {
		return nil, fmt.Errorf("there are no names of fields, but %q", quoted(lines[1]))
	}
	columns := map[string]int{}
	for i, name := range strings.Fields(names) {
		columns[name] = i
	}
	var out []server
	seen := map[string]bool{}
	for _, line := range lines[2:] {
		s, err := readServer(strings.Fields(line), columns, backend)
		if err == nil && seen[s.name] {
			err = fmt.Errorf("server %q is there twice", quoted(s.name))
		}
		if err != nil {
			return nil, err
		}
		seen[s.name] = true
		out = append(out, s)
	}
	return out, nil
}

func readServer(fields []string, columns map[string]int, backend string) (s server, err error) {
	if len(fields) != len(columns) {
		return s, fmt.Errorf("a line has %d fields and not %d", len(fields), len(columns))
	}
	text := func(name string) string {
		i, ok := columns[name]
		if !ok {
			err = errors.Join(err, fmt.Errorf("there is no field %s", name))
			return ""
		}
		return fields[i]
	}
	number := func(name string) int {
		n, wrong := strconv.Atoi(text(name))
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %q is not a number", name, quoted(text(name))))
		}
		return n
	}
	if is := text("be_name"); is != backend {
		return s, fmt.Errorf("a line is about backend %q", quoted(is))
	}
	admin, checks := number("srv_admin_state"), number("srv_check_state")
	s = server{
		name: text("srv_name"), address: text("srv_addr"), port: number("srv_port"), weight: number("srv_uweight"),
		maintenance: admin&adminMaintenance != 0, drain: admin&adminDrain != 0,
		running: number("srv_op_state") != stateStopped, checkable: checks&checkConfigured != 0,
		checked: checks&checkConfigured != 0 && checks&checkEnabled != 0, health: number("srv_check_health"),
	}
	if number("srv_agent_state")&checkConfigured == 0 {
		s.configured = number("srv_iweight")
	}
	return s, err
}

// readStatistics adds the servers' data from "show stat BACKEND 4 -1".
func readStatistics(text, backend string, servers []server) error {
	if strings.HasPrefix(text, "No such proxy") {
		return noBackend(backend)
	}
	lines, err := whole(text)
	if err != nil {
		return err
	}
	names, ok := strings.CutPrefix(lines[0], "# ")
	if !ok {
		return fmt.Errorf("the answer begins with %q, not with names of fields", quoted(lines[0]))
	}
	r := csv.NewReader(strings.NewReader(names + "\n" + strings.Join(lines[1:], "\n")))
	rows, err := r.ReadAll() // each with as many fields as there are names
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return errors.New("there are no names of fields")
	}
	columns := map[string]int{}
	for i, name := range rows[0] {
		columns[name] = i
	}
	for _, name := range []string{
		"pxname", "svname", "scur", "qcur", "status", "check_status", "check_rise",
		"check_fall",
	} {
		if _, ok := columns[name]; !ok {
			return fmt.Errorf("there is no field %s", name)
		}
	}
	of := map[string][]string{}
	for _, row := range rows[1:] {
		if px := row[columns["pxname"]]; px != backend {
			return fmt.Errorf("a line is about backend %q", quoted(px))
		}
		of[row[columns["svname"]]] = row
	}
	if len(of) != len(servers) {
		return errChanged
	}
	for i := range servers {
		row, ok := of[servers[i].name]
		if !ok {
			return errChanged
		}
		if err := servers[i].addStatistics(row, columns); err != nil {
			return fmt.Errorf("server %s: %w", servers[i].name, err)
		}
	}
	return nil
}

func (s *server) addStatistics(row []string, columns map[string]int) error {
	var current, queued int
	for name, to := range map[string]*int{
		"scur": &current, "qcur": &queued, "check_rise": &s.rise,
		"check_fall": &s.fall,
	} {
		text := row[columns[name]]
		if text == "" && strings.HasPrefix(name, "check_") {
			if s.checked && !s.maintenance {
				return errChanged // it has entered maintenance since
			}
			continue // HAProxy reports them for checked servers
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%s: %q is not a number", name, quoted(text))
		}
		*to = n
	}
	s.connections = current + queued
	s.why = quoted(row[columns["status"]] + " " + row[columns["check_status"]])
	return nil
}

// healthOf returns the server's health. A server that was added or enabled starts with the counter
// at rise, and HAProxy calls it up; only the next successful check raises the counter further.
func (s server) healthOf() balancer.Health {
	switch {
	case !s.checked:
		return balancer.HealthUnknown
	case s.maintenance:
		return balancer.Checking
	case !s.running:
		return balancer.Down
	case s.health > s.rise:
		return balancer.Up
	default:
		return balancer.Checking
	}
}

func (s server) state() balancer.State {
	switch {
	case s.maintenance:
		return balancer.Disabled
	case s.drain:
		return balancer.Draining
	default:
		return balancer.Ready
	}
}

func (s server) at(m balancer.Member) bool { return s.address == m.Address && s.port == m.Port }

// weighs reports whether the server has the member's weight, or the configured one if the member
// has none.
func (s server) weighs(m balancer.Member) bool {
	want := cmp.Or(m.Weight, s.configured)
	return want == 0 || s.weight == want
}

func (s server) status(instance string) balancer.Status {
	return balancer.Status{
		Member: balancer.Member{
			Instance: instance, Address: s.address, Port: s.port, Use: balancer.Use{Weight: s.weight},
		},
		State: s.state(), DefaultWeight: s.configured, Health: s.healthOf(), Why: s.why, Connections: s.connections,
	}
}
