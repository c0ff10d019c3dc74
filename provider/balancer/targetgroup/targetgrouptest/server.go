package targetgrouptest

import (
	"context"
	"encoding/xml"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/provider/amazon/amazontest"
)

// Config describes the account.
type Config struct {
	Region  string
	Keys    map[string]string // access keys and their secrets
	Session string            // the session token that requests must have; "" is none
	Groups  map[string]Group  // by ARN

	PerSecond float64 // allowed requests; 0: no limit
	Burst     int
}

// Group is a target group.
type Group struct {
	Type   string        // of its targets: ip or instance
	Most   int           // the most targets; 0: no limit
	Checks time.Duration // between two checks
	Delay  time.Duration // the deregistration delay
	Unused bool          // no load balancer uses it
}

// Server is the account. It is an http.Handler.
type Server struct {
	config Config
	bucket *rate.Limiter
	end    context.CancelFunc
	checks sync.WaitGroup

	mu       sync.Mutex
	targets  map[string]map[netip.AddrPort]*target // by group
	requests map[string]int
}

type target struct {
	checked, healthy bool
	leaves           time.Time // the end of its drain; zero: it does not drain
}

// New makes an account, and starts the checks of its target groups.
func New(c Config) *Server {
	c.Groups = maps.Clone(c.Groups)
	ctx, end := context.WithCancel(context.Background())
	s := &Server{
		config: c, end: end, bucket: rate.NewLimiter(rate.Inf, 0), targets: map[string]map[netip.AddrPort]*target{},
		requests: map[string]int{},
	}
	if c.PerSecond > 0 {
		s.bucket = rate.NewLimiter(rate.Limit(c.PerSecond), c.Burst)
	}
	for arn, g := range c.Groups {
		s.targets[arn] = map[netip.AddrPort]*target{}
		if !g.Unused {
			s.checks.Go(func() { s.check(ctx, arn, g) })
		}
	}
	return s
}

// Close ends the checks.
func (s *Server) Close() {
	s.end()
	s.checks.Wait()
}

// Requests returns the number of requests by action.
func (s *Server) Requests(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[action]
}

// Forget removes all targets of a group, as if they had been deregistered by hand.
func (s *Server) Forget(arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.targets[arn])
}

// Delete deletes a group.
func (s *Server) Delete(arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.config.Groups, arn)
}

// Register registers a target by hand.
func (s *Server) Register(arn string, at netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.targets[arn][at] = &target{}
}

// Deregister removes a target by hand, and reports whether it was there and not draining.
func (s *Server) Deregister(arn string, at netip.AddrPort) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.targets[arn][at]
	delete(s.targets[arn], at)
	return t != nil && t.leaves.IsZero()
}

// check checks the targets of a group until the server is closed.
func (s *Server) check(ctx context.Context, arn string, g Group) {
	again := time.NewTicker(g.Checks)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		s.mu.Lock()
		var places []netip.AddrPort
		for at := range s.targets[arn] {
			places = append(places, at)
		}
		s.mu.Unlock()
		for _, at := range places {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.String())
			if err == nil {
				conn.Close()
			}
			s.mu.Lock()
			if t := s.targets[arn][at]; t != nil {
				t.checked, t.healthy = true, err == nil
			}
			s.mu.Unlock()
		}
	}
}

// ServeHTTP answers one request of the Query API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	account := amazontest.Account{
		Region: s.config.Region, Service: "elasticloadbalancing", Keys: s.config.Keys, Session: s.config.Session,
	}
	form, f := account.Read(w, r)
	var answer any
	if f == nil {
		answer, f = s.act(form)
	}
	amazontest.Respond(w, false, answer, f)
}

func (s *Server) act(form url.Values) (any, *amazontest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[form.Get("Action")]++
	if !s.bucket.Allow() {
		return nil, &amazontest.Fault{Status: http.StatusBadRequest, Code: "Throttling", Message: "Rate exceeded"}
	}
	for _, targets := range s.targets {
		for at, t := range targets {
			if !t.leaves.IsZero() && !time.Now().Before(t.leaves) {
				delete(targets, at)
			}
		}
	}
	do := map[string]func(*amazontest.Query) (any, *amazontest.Fault){
		"DescribeTargetGroups": s.describeGroups, "DescribeTargetHealth": s.describeHealth,
		"RegisterTargets": s.register, "DeregisterTargets": s.deregister,
	}[form.Get("Action")]
	if do == nil {
		return nil, amazontest.Refuse("InvalidAction", "The action %s is not valid for this web service.", form.Get("Action"))
	}
	return do(amazontest.NewQuery(form))
}

func (s *Server) group(arn string) (Group, *amazontest.Fault) {
	g, ok := s.config.Groups[arn]
	if !ok {
		return g, amazontest.Refuse("TargetGroupNotFound", "Target groups '%s' not found", arn)
	}
	return g, nil
}

// chosen returns the group and the targets that a request names.
func (s *Server) chosen(q *amazontest.Query) (arn string, g Group, places []netip.AddrPort, f *amazontest.Fault) {
	arn = q.Text("TargetGroupArn")
	if g, f = s.group(arn); f != nil {
		return arn, g, nil, f
	}
	for _, prefix := range q.Groups("Targets.member") {
		id, port := q.Text(prefix+"Id"), q.Number(prefix+"Port")
		at, err := netip.ParseAddr(id)
		if g.Type != "ip" || err != nil || port < 1 || port > 65535 {
			return arn, g, nil, amazontest.Refuse("InvalidTarget", "The target '%s' is not valid for a target group of type "+
				"%s", id, g.Type)
		}
		places = append(places, netip.AddrPortFrom(at, uint16(port)))
	}
	return arn, g, places, q.Done()
}

type groupItem struct {
	ARN  string `xml:"TargetGroupArn"`
	Name string `xml:"TargetGroupName"`
	Type string `xml:"TargetType"`
}

func (s *Server) describeGroups(q *amazontest.Query) (any, *amazontest.Fault) {
	var out struct {
		XMLName xml.Name    `xml:"http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/ DescribeTargetGroupsResponse"`
		Groups  []groupItem `xml:"DescribeTargetGroupsResult>TargetGroups>member"`
	}
	for _, arn := range q.List("TargetGroupArns.member") {
		g, f := s.group(arn)
		if f != nil {
			return nil, f
		}
		out.Groups = append(out.Groups, groupItem{arn, strings.Split(arn, "/")[1], g.Type})
	}
	return out, q.Done()
}

type healthItem struct {
	ID     string `xml:"Target>Id"`
	Port   uint16 `xml:"Target>Port"`
	State  string `xml:"TargetHealth>State"`
	Reason string `xml:"TargetHealth>Reason,omitempty"`
}

func (s *Server) describeHealth(q *amazontest.Query) (any, *amazontest.Fault) {
	arn, g, places, f := s.chosen(q)
	if f != nil {
		return nil, f
	}
	if places == nil {
		for at := range s.targets[arn] {
			places = append(places, at)
		}
		slices.SortFunc(places, netip.AddrPort.Compare)
	}
	var out struct {
		XMLName xml.Name `xml:"http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/ DescribeTargetHealthResponse"`
		Targets struct {
			Items []healthItem `xml:"member"`
		} `xml:"DescribeTargetHealthResult>TargetHealthDescriptions"` // Amazon sends the element of an empty list too
	}
	for _, at := range places {
		state, reason := s.targets[arn][at].health(g)
		out.Targets.Items = append(out.Targets.Items, healthItem{at.Addr().String(), at.Port(), state, reason})
	}
	return out, nil
}

func (t *target) health(g Group) (state, reason string) {
	switch {
	case t == nil:
		return "unused", "Target.NotRegistered"
	case !t.leaves.IsZero():
		return "draining", "Target.DeregistrationInProgress"
	case g.Unused:
		return "unused", "Target.NotInUse"
	case !t.checked:
		return "initial", "Elb.InitialHealthChecking"
	case t.healthy:
		return "healthy", ""
	default:
		return "unhealthy", "Target.FailedHealthChecks"
	}
}

func (s *Server) register(q *amazontest.Query) (any, *amazontest.Fault) {
	arn, g, places, f := s.chosen(q)
	if f != nil {
		return nil, f
	}
	targets := s.targets[arn]
	for _, at := range places {
		t := targets[at]
		switch {
		case t == nil && g.Most > 0 && len(targets) >= g.Most:
			return nil, amazontest.Refuse("TooManyTargets", "The maximum number of targets per target group is %d", g.Most)
		case t == nil || !t.leaves.IsZero():
			targets[at] = &target{}
		}
	}
	return struct {
		XMLName xml.Name `xml:"http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/ RegisterTargetsResponse"`
		Result  struct{} `xml:"RegisterTargetsResult"`
	}{}, nil
}

func (s *Server) deregister(q *amazontest.Query) (any, *amazontest.Fault) {
	arn, g, places, f := s.chosen(q)
	if f != nil {
		return nil, f
	}
	for _, at := range places {
		if t := s.targets[arn][at]; t != nil {
			t.leaves = time.Now().Add(g.Delay)
		}
	}
	return struct {
		XMLName xml.Name `xml:"http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/ DeregisterTargetsResponse"`
		Result  struct{} `xml:"DeregisterTargetsResult"`
	}{}, nil
}
