package store

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// MaxChecks is the most checks that one group may have.
const MaxChecks = 32

// inChecks begins the path of a field of each check; in a file there is a number between the
// brackets.
const inChecks = "checks[]."

// checkField returns a field of each check. It is judged where there is something to judge: get is
// nil-safe by has.
func checkField[T any](path, kind, def, allowed, doc string, has func(*Check) bool, get func(*Check) T,
	ok func(*Check, T) bool,
) Field {
	return Field{
		Path: inChecks + path, Type: kind, Default: def, Allowed: allowed, Rule: "DET-9", Doc: doc,
		wrong: func(g *Group) []FieldError {
			var out []FieldError
			for i := range g.Checks {
				c := &g.Checks[i]
				if !has(c) {
					continue
				}
				if v := get(c); !ok(c, v) {
					out = append(out, FieldError{
						Path: fmt.Sprintf("checks[%d].%s", i, path), Value: show(v),
						Allowed: allowed, Rule: "DET-9",
					})
				}
			}
			return out
		},
	}
}

// CheckKinds are the kinds of a check, of which it has exactly one.
var CheckKinds = []string{"http", "tcp", "grpc", "exec", "process"}

func every(*Check) bool      { return true }
func isHTTP(c *Check) bool   { return c.HTTP != nil }
func isTCP(c *Check) bool    { return c.TCP != nil }
func isGRPC(c *Check) bool   { return c.GRPC != nil }
func isExec(c *Check) bool   { return c.Exec != nil }
func isByName(c *Check) bool { return c.Process != nil }

const (
	portAllowed = "1 to 65535, or a text such as ${port}"
	hostDoc     = "Where the server is."
	skipDoc     = "Take any certificate."
	caDoc       = "The file on the machine with the certificates that the server's must be signed " +
		"by; none: the machine's own."
	nameDoc = "The name that the certificate must have; none: the host."
)

func anyPort(_ *Check, p Port) bool      { return p.ok() }
func short(_ *Check, s string) bool      { return len(s) <= 255 }
func long(_ *Check, s string) bool       { return len(s) <= 4096 }
func eitherWay(_ *Check, _ bool) bool    { return true }
func threshold(_ *Check, n int) bool     { return n >= 2 && n <= 10 }
func plainRun(_ *Check, a []string) bool { return len(a) > 0 && runOK(a) }

var (
	checkNameForm = regexp.MustCompile(`^[!-~]{1,100}$`)
	methodForm    = regexp.MustCompile(`^[A-Z]{1,20}$`)
	headerForm    = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)
)

func headersOK(_ *Check, m map[string]string) bool {
	for k, v := range m {
		if !headerForm.MatchString(k) || len(v) > 4096 || strings.ContainsAny(v, "\r\n\x00") {
			return false
		}
	}
	return len(m) <= 50
}

// checkFields returns the fields that each check has, after the list itself.
func checkFields() []Field {
	fields := []Field{
		{
			Path: "checks", Type: "list of checks", Default: "none", Rule: "DET-9",
			Allowed: fmt.Sprintf("at most %d checks with different names, each of exactly one kind: %s", MaxChecks,
				strings.Join(CheckKinds, ", ")),
			Doc:   "How an instance shows that it is healthy, beside its workload's process: all must pass.",
			wrong: wrongChecks,
		},
		checkField("name", "string", "kind and port, like http:8081",
			`1 to 100 visible characters, and not "process", which is the workload's own`, "What the check is called.",
			func(c *Check) bool { return c.Name != "" || c.oneKind() }, func(c *Check) string { return c.Name },
			func(_ *Check, s string) bool { return checkNameForm.MatchString(s) && s != ProcessCheckName }),
	}
	return slices.Concat(fields, httpCheckFields(), serverCheckFields(), programCheckFields(), checkTimeFields())
}

func httpCheckFields() []Field {
	return []Field{
		checkField("http.scheme", "string", "http", `"http" or "https"`, "How the server is spoken to.", isHTTP,
			func(c *Check) string { return c.HTTP.Scheme },
			func(_ *Check, s string) bool { return oneOf(s, "", "http", "https") }),
		checkField("http.host", "string", "127.0.0.1", "at most 255 characters", hostDoc, isHTTP,
			func(c *Check) string { return c.HTTP.Host }, short),
		checkField("http.port", "port", "", portAllowed, "Its port.", isHTTP,
			func(c *Check) Port { return c.HTTP.Port }, anyPort),
		checkField("http.path", "string", "/", "a path that begins with / or ${, of at most 4096 characters",
			"What is asked for, with a query if need be.", isHTTP,
			func(c *Check) string { return c.HTTP.Path },
			func(_ *Check, s string) bool {
				return s == "" || len(s) <= 4096 && (s[0] == '/' || strings.HasPrefix(s, "${"))
			}),
		checkField("http.method", "string", "GET", "capital letters, like GET or HEAD", "The method.", isHTTP,
			func(c *Check) string { return c.HTTP.Method },
			func(_ *Check, s string) bool { return s == "" || methodForm.MatchString(s) }),
		checkField("http.headers", "map of strings", "none", "at most 50 headers",
			"Headers of the request; Host is one of them.", isHTTP,
			func(c *Check) map[string]string { return c.HTTP.Headers }, headersOK),
		checkField("http.status", "list of status codes", "200-399", "at most 20 of 100 to 599, alone or like 200-299",
			"The answers that pass.", isHTTP,
			func(c *Check) []string { return c.HTTP.Status }, func(_ *Check, l []string) bool { return statusOK(l) }),
		checkField("http.body", "string", "none", "at most 4096 characters",
			"What the first 64 KiB of the answer must contain.", isHTTP, func(c *Check) string { return c.HTTP.Body },
			long),
		checkField("http.body_regexp", "string", "none", "a regular expression (RE2) of at most 4096 characters",
			"What the first 64 KiB of the answer must match.", isHTTP,
			func(c *Check) string { return c.HTTP.BodyRegexp },
			func(_ *Check, s string) bool { _, err := regexp.Compile(s); return err == nil && len(s) <= 4096 }),
		checkField("http.follow_redirects", "boolean", "false", "true or false", "Judge what a redirection leads to.",
			isHTTP, func(c *Check) bool { return c.HTTP.FollowRedirects }, eitherWay),
		checkField("http.skip_verify", "boolean", "false", "true or false", skipDoc, isHTTP,
			func(c *Check) bool { return c.HTTP.SkipVerify }, eitherWay),
		checkField("http.ca_file", "string", "none", "at most 4096 characters", caDoc, isHTTP,
			func(c *Check) string { return c.HTTP.CAFile }, long),
		checkField("http.server_name", "string", "none", "at most 255 characters", nameDoc, isHTTP,
			func(c *Check) string { return c.HTTP.ServerName }, short),
	}
}

func serverCheckFields() []Field {
	return []Field{
		checkField("tcp.host", "string", "127.0.0.1", "at most 255 characters", hostDoc, isTCP,
			func(c *Check) string { return c.TCP.Host }, short),
		checkField("tcp.port", "port", "", portAllowed, "The port, which has to take a connection.", isTCP,
			func(c *Check) Port { return c.TCP.Port }, anyPort),
		checkField("grpc.host", "string", "127.0.0.1", "at most 255 characters", hostDoc, isGRPC,
			func(c *Check) string { return c.GRPC.Host }, short),
		checkField("grpc.port", "port", "", portAllowed, "Its port; grpc.health.v1 is asked.", isGRPC,
			func(c *Check) Port { return c.GRPC.Port }, anyPort),
		checkField("grpc.service", "string", "none", "at most 255 characters",
			"The service that must be serving; none: the server as a whole.", isGRPC,
			func(c *Check) string { return c.GRPC.Service }, short),
		checkField("grpc.tls", "boolean", "false", "true or false", "Speak TLS.", isGRPC,
			func(c *Check) bool { return c.GRPC.TLS }, eitherWay),
		checkField("grpc.skip_verify", "boolean", "false", "true or false", skipDoc, isGRPC,
			func(c *Check) bool { return c.GRPC.SkipVerify }, eitherWay),
		checkField("grpc.ca_file", "string", "none", "at most 4096 characters", caDoc, isGRPC,
			func(c *Check) string { return c.GRPC.CAFile }, long),
		checkField("grpc.server_name", "string", "none", "at most 255 characters", nameDoc, isGRPC,
			func(c *Check) string { return c.GRPC.ServerName }, short),
	}
}

func programCheckFields() []Field {
	return []Field{
		checkField("exec.run", "list of strings", "", "a program and its arguments, at most 256 of at most 4096 bytes",
			"A command that exits with 0, with the workload's environment and directory. What it leaves running is killed.",
			isExec, func(c *Check) []string { return c.Exec.Run }, plainRun),
		checkField("process.name", "string", "none",
			"a program's name of at most 255 characters without a /, or nothing and a pid_file instead",
			"A program that must be running.", isByName,
			func(c *Check) string { return c.Process.Name },
			func(c *Check, s string) bool {
				return len(s) <= 255 && !strings.Contains(s, "/") && (s == "") != (c.Process.PIDFile == "")
			}),
		checkField("process.pid_file", "string", "none", "at most 4096 characters, and no name beside it",
			"A file on the machine with the ID of a process that must be running.", isByName,
			func(c *Check) string { return c.Process.PIDFile }, long),
	}
}

// checkTimeFields are what every kind of check has.
func checkTimeFields() []Field {
	return []Field{
		checkField("interval", "duration", "2s", "1s to 5m0s, and at least 1s more than the timeout",
			"How often it is done.", every,
			func(c *Check) Duration { return c.Interval },
			func(_ *Check, d Duration) bool { return d.D() >= time.Second && d.D() <= 5*time.Minute }),
		checkField("timeout", "duration", "1s", "1s to 1m0s, and at least 1s less than the interval",
			"How long it may take.", every,
			func(c *Check) Duration { return c.Timeout },
			func(c *Check, d Duration) bool {
				// a wrong interval has an error of its own
				fits := d.D() <= c.Interval.D()-time.Second || c.Interval.D() < time.Second
				return d.D() >= time.Second && d.D() <= time.Minute && fits
			}),
		checkField("unhealthy_threshold", "integer", "2", "2 to 10, or 0 for the default",
			"So many failures in a row make it fail.", every,
			func(c *Check) int { return c.UnhealthyThreshold }, threshold),
		checkField("healthy_threshold", "integer", "2", "2 to 10, or 0 for the default",
			"So many passes in a row make it pass.", every,
			func(c *Check) int { return c.HealthyThreshold }, threshold),
		checkField("optional", "boolean", "false", "true or false",
			"A failure of it is shown, and makes no instance unhealthy.",
			every, func(c *Check) bool { return c.Optional }, eitherWay),
	}
}

// wrongChecks judges the list as a whole: how many there are, their kinds and their names.
func wrongChecks(g *Group) []FieldError {
	var out []FieldError
	if n := len(g.Checks); n > MaxChecks {
		out = append(out, FieldError{
			Path: "checks", Value: number(n, "check"),
			Allowed: fmt.Sprintf("at most %d checks", MaxChecks), Rule: "DET-9",
		})
	}
	first := map[string]int{}
	for i := range g.Checks {
		c, at := &g.Checks[i], fmt.Sprintf("checks[%d]", i)
		if !c.oneKind() {
			out = append(out, FieldError{
				Path: at, Value: cmp.Or(c.Kind(), "no kind"),
				Allowed: "exactly one kind of check: " + strings.Join(CheckKinds, ", "), Rule: "DET-9",
			})
		}
		if earlier, twice := first[c.Name]; twice && c.Name != "" {
			out = append(out, FieldError{
				Path: at + ".name", Value: show(c.Name),
				Allowed: fmt.Sprintf("a name other than checks[%d] has", earlier), Rule: "DET-9",
			})
			continue
		}
		first[c.Name] = i
	}
	return out
}

func number(n int, what string) string { return fmt.Sprintf("%d %ss", n, what) }
