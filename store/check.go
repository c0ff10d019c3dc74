package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Check is one application check (DET-9). Exactly one of its kinds is set. In all its texts,
// ${name} is replaced by a variable or a fact of the machine.
type Check struct {
	Name    string        `json:"name"`
	HTTP    *HTTPCheck    `json:"http,omitempty"`
	TCP     *TCPCheck     `json:"tcp,omitempty"`
	GRPC    *GRPCCheck    `json:"grpc,omitempty"`
	Exec    *ExecCheck    `json:"exec,omitempty"`
	Process *ProcessCheck `json:"process,omitempty"`

	Interval           Duration `json:"interval"`
	Timeout            Duration `json:"timeout"`
	UnhealthyThreshold int      `json:"unhealthy_threshold"` // results in a row
	HealthyThreshold   int      `json:"healthy_threshold"`
	Optional           bool     `json:"optional,omitempty"` // it is shown, and makes no instance unhealthy
}

// HTTPCheck asks a web server.
type HTTPCheck struct {
	Scheme          string            `json:"scheme,omitempty"` // empty: http
	Host            string            `json:"host,omitempty"`   // empty: 127.0.0.1
	Port            Port              `json:"port"`
	Path            string            `json:"path,omitempty"`   // empty: /
	Method          string            `json:"method,omitempty"` // empty: GET
	Headers         map[string]string `json:"headers,omitempty"`
	Status          []string          `json:"status,omitempty"` // "200" or "200-399"; empty: 200-399
	Body            string            `json:"body,omitempty"`   // that the answer contains
	BodyRegexp      string            `json:"body_regexp,omitempty"`
	FollowRedirects bool              `json:"follow_redirects,omitempty"`
	SkipVerify      bool              `json:"skip_verify,omitempty"`
	CAFile          string            `json:"ca_file,omitempty"`
	ServerName      string            `json:"server_name,omitempty"`
}

// TCPCheck connects to a port.
type TCPCheck struct {
	Host string `json:"host,omitempty"`
	Port Port   `json:"port"`
}

// GRPCCheck asks a server by grpc.health.v1.
type GRPCCheck struct {
	Host       string `json:"host,omitempty"`
	Port       Port   `json:"port"`
	Service    string `json:"service,omitempty"` // empty: the server as a whole
	TLS        bool   `json:"tls,omitempty"`
	SkipVerify bool   `json:"skip_verify,omitempty"`
	CAFile     string `json:"ca_file,omitempty"`
	ServerName string `json:"server_name,omitempty"`
}

// ExecCheck runs a command, which is to exit with 0.
type ExecCheck struct {
	Run []string `json:"run"`
}

// ProcessCheck looks for a process that the agent does not run: by its name, or by the file that
// holds its ID.
type ProcessCheck struct {
	Name    string `json:"name,omitempty"`
	PIDFile string `json:"pid_file,omitempty"`
}

// Port is a port's number, or a text like ${port} that becomes one.
type Port string

// MarshalJSON writes a number where it is one.
func (p Port) MarshalJSON() ([]byte, error) {
	if _, err := strconv.ParseUint(string(p), 10, 16); err == nil && p[0] != '0' {
		return []byte(p), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(string(p)); err != nil {
		return nil, fmt.Errorf("write port: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// UnmarshalJSON reads a number or a text.
func (p *Port) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '"' {
		var n json.Number
		if err := json.Unmarshal(data, &n); err != nil {
			return fmt.Errorf("read port: %w", err)
		}
		*p = Port(n)
		return nil
	}
	return json.Unmarshal(data, (*string)(p))
}

// DefaultCheck returns a check with all defaults, without a kind.
func DefaultCheck() Check {
	return Check{
		Interval: Duration(2 * time.Second), Timeout: Duration(time.Second), UnhealthyThreshold: 2,
		HealthyThreshold: 2,
	}
}

// UnmarshalJSON fills in the defaults of fields that are left out.
func (c *Check) UnmarshalJSON(data []byte) error {
	type plain Check
	p := plain(DefaultCheck())
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*c = Check(p)
	return nil
}

// strictCheck is a Check without UnmarshalJSON: a decoder's DisallowUnknownFields applies to it.
type strictCheck Check

// knownChecks refuses unknown fields in the checks of a spec. Check has an UnmarshalJSON of its
// own, to which the decoder's DisallowUnknownFields does not apply.
func knownChecks(spec []byte) error {
	var only struct {
		Checks []json.RawMessage `json:"checks"`
	}
	if err := json.Unmarshal(spec, &only); err != nil {
		return err
	}
	for i, raw := range only.Checks {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(new(strictCheck)); err != nil {
			return fmt.Errorf("checks[%d]: %w", i, err)
		}
	}
	return nil
}

// ProcessCheckName is the check that a workload has unasked.
const ProcessCheckName = "process"

// Kind returns what a check asks, or a joint list if it is several, or nothing.
func (c *Check) Kind() string {
	var kinds []string
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"http", c.HTTP != nil},
		{"tcp", c.TCP != nil},
		{"grpc", c.GRPC != nil},
		{"exec", c.Exec != nil},
		{"process", c.Process != nil},
	} {
		if k.set {
			kinds = append(kinds, k.name)
		}
	}
	return strings.Join(kinds, " and ")
}

// oneKind reports whether the check has exactly one kind.
func (c *Check) oneKind() bool { return slices.Contains(CheckKinds, c.Kind()) }

// subject returns what distinguishes a check from others of its kind, for people.
func (c *Check) subject() string {
	switch {
	case c.HTTP != nil:
		return string(c.HTTP.Port)
	case c.TCP != nil:
		return string(c.TCP.Port)
	case c.GRPC != nil:
		return string(c.GRPC.Port)
	case c.Exec != nil && len(c.Exec.Run) > 0:
		return path.Base(c.Exec.Run[0])
	case c.Process != nil && c.Process.Name != "":
		return c.Process.Name
	case c.Process != nil && c.Process.PIDFile != "":
		return path.Base(c.Process.PIDFile)
	default:
		return ""
	}
}

// completeChecks fills in names and thresholds.
func completeChecks(checks []Check) {
	taken := map[string]bool{}
	for i := range checks {
		taken[checks[i].Name] = true
	}
	for i := range checks {
		c := &checks[i]
		if c.UnhealthyThreshold == 0 {
			c.UnhealthyThreshold = DefaultCheck().UnhealthyThreshold
		}
		if c.HealthyThreshold == 0 {
			c.HealthyThreshold = DefaultCheck().HealthyThreshold
		}
		if c.Name != "" || !c.oneKind() {
			continue
		}
		base := c.Kind() + ":" + c.subject()
		c.Name = base
		for n := 2; taken[c.Name]; n++ {
			c.Name = fmt.Sprintf("%s#%d", base, n)
		}
		taken[c.Name] = true
	}
}

// statusRange is one item of HTTPCheck.Status.
var statusRange = regexp.MustCompile(`^([1-5][0-9][0-9])(?:-([1-5][0-9][0-9]))?$`)

func statusOK(list []string) bool {
	for _, s := range list {
		m := statusRange.FindStringSubmatch(s)
		if m == nil || m[2] != "" && m[2] < m[1] {
			return false
		}
	}
	return len(list) <= 20
}

func (p Port) ok() bool {
	if strings.Contains(string(p), "${") {
		return len(p) <= 100
	}
	n, err := strconv.Atoi(string(p))
	return err == nil && n >= 1 && n <= 65535 && p[0] != '+' && p[0] != '0'
}
