package ec2test

import (
	"encoding/base64"
	"encoding/xml"
	"time"

	"github.com/leasehold/leasehold/provider/amazon/amazontest"
)

// the reason that EC2 gives for an ordered end.
const userReason = "Client.UserInitiatedShutdown"

type change struct {
	ID     string  `xml:"instanceId"`
	Now    stateOf `xml:"currentState"`
	Before stateOf `xml:"previousState"`
}

// chosen are the machines that a request names. EC2 does not find one that it does not show yet.
func (s *Server) chosen(q *amazontest.Query) (out []*machine, f *amazontest.Fault) {
	ids := q.List("InstanceId")
	if len(ids) == 0 {
		return nil, amazontest.Refuse("MissingParameter", "The request must contain the parameter InstanceId")
	}
	for _, id := range ids {
		m := s.machines[id]
		if m == nil || time.Since(m.made) < s.config.Lag || m.state == terminated && time.Since(m.since) > listedFor {
			return nil, amazontest.Refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
		out = append(out, m)
	}
	return out, q.Done()
}

// changed changes the machines that a request names. All of them are looked at first.
func (s *Server) changed(q *amazontest.Query, refused func(*machine) *amazontest.Fault, do func(*machine)) ([]change,
	*amazontest.Fault,
) {
	machines, f := s.chosen(q)
	if f != nil {
		return nil, f
	}
	for _, m := range machines {
		if f := refused(m); f != nil {
			return nil, f
		}
	}
	var out []change
	for _, m := range machines {
		before := m.stateOf()
		do(m)
		out = append(out, change{m.id, m.stateOf(), before})
	}
	return out, nil
}

func wrongState(m *machine) *amazontest.Fault {
	return amazontest.Refuse("IncorrectInstanceState", "The instance '%s' is not in a state from which this is possible: "+
		"%s", m.id,
		stateNames[m.state])
}

func (s *Server) stop(q *amazontest.Query) (any, *amazontest.Fault) {
	force := q.Text("Force") == "true"
	q.Text("SkipOsShutdown")
	changes, f := s.changed(q, func(m *machine) *amazontest.Fault {
		switch {
		case m.spot:
			return amazontest.Refuse("UnsupportedOperation", "You can't stop the Spot Instance '%s' because it is associated "+
				"with a one-time Spot request.", m.id)
		case m.state == running, m.state == stopping, m.state == stopped:
			return nil
		}
		return wrongState(m)
	}, func(m *machine) {
		switch {
		case m.state == running:
			m.stop(userReason, userReason+": User initiated shutdown")
		case m.state == stopping && force:
			m.after(0, func() { m.enter(stopped, m.reason, m.message) })
		}
	})
	return struct {
		XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ StopInstancesResponse"`
		Changes []change `xml:"instancesSet>item"`
	}{Changes: changes}, f
}

func (s *Server) start(q *amazontest.Query) (any, *amazontest.Fault) {
	changes, f := s.changed(q, func(m *machine) *amazontest.Fault {
		switch m.state {
		case stopped, running, pending:
			return nil
		}
		return wrongState(m)
	}, func(m *machine) {
		if m.state == stopped {
			m.boot()
		}
	})
	return struct {
		XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ StartInstancesResponse"`
		Changes []change `xml:"instancesSet>item"`
	}{Changes: changes}, f
}

func (s *Server) reboot(q *amazontest.Query) (any, *amazontest.Fault) {
	_, f := s.changed(q, func(m *machine) *amazontest.Fault {
		if m.state != running {
			return wrongState(m)
		}
		return nil
	}, func(m *machine) {
		m.halt()
		m.work()
	})
	return struct {
		XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ RebootInstancesResponse"`
		Done    bool     `xml:"return"`
	}{Done: true}, f
}

func (s *Server) terminate(q *amazontest.Query) (any, *amazontest.Fault) {
	q.Text("SkipOsShutdown")
	q.Text("Force")
	changes, f := s.changed(q, func(*machine) *amazontest.Fault { return nil },
		func(m *machine) { m.remove(userReason, userReason+": User initiated shutdown") })
	return struct {
		XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ TerminateInstancesResponse"`
		Changes []change `xml:"instancesSet>item"`
	}{Changes: changes}, f
}

func (s *Server) console(q *amazontest.Query) (any, *amazontest.Fault) {
	id := q.Text("InstanceId")
	q.Text("Latest")
	m := s.machines[id]
	if m == nil || time.Since(m.made) < s.config.Lag {
		return nil, amazontest.Refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
	}
	return struct {
		XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ GetConsoleOutputResponse"`
		ID      string   `xml:"instanceId"`
		Output  string   `xml:"output"`
	}{ID: id, Output: base64.StdEncoding.EncodeToString(m.console)}, q.Done()
}
