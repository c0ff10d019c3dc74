package haproxy

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasehold/leasehold/provider/balancer"
)

const (
	stateHeader = "# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight " +
		"srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state " +
		"bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr " +
		"srv_agent_addr srv_agent_port\n"
	aServer     = "3 web 1 one 10.0.0.1 2 0 10 10 1 6 3 4 6 0 0 0 - 80 - 0 0 - - 0\n"
	stats       = "# pxname,svname,qcur,scur,status,check_status,check_rise,check_fall,\n"
	itsStats    = "web,one,2,5,UP,L7OK,2,3,\n"
	anotherStat = "web,two,2,5,UP,L7OK,2,3,\n"
)

// A server's health counts from the first successful check since the server was enabled.
//
// proves LB-2
func TestHealthOfAServer(t *testing.T) {
	for name, test := range map[string]struct {
		opState, admin, health, check string
		want                          balancer.Health
		state                         balancer.State
	}{
		"up":               {"2", "0", "4", "6", balancer.Up, balancer.Ready},
		"never checked":    {"2", "0", "2", "6", balancer.Checking, balancer.Ready},
		"a check failed":   {"2", "0", "3", "6", balancer.Up, balancer.Ready},
		"down":             {"0", "0", "0", "6", balancer.Down, balancer.Ready},
		"rising":           {"0", "0", "1", "6", balancer.Down, balancer.Ready},
		"slow start":       {"1", "4", "4", "6", balancer.Up, balancer.Ready},
		"draining":         {"2", "12", "4", "7", balancer.Up, balancer.Draining},
		"draining, down":   {"0", "8", "0", "6", balancer.Down, balancer.Draining},
		"maintenance":      {"0", "5", "4", "14", balancer.Checking, balancer.Disabled},
		"unresolved":       {"0", "32", "4", "6", balancer.Checking, balancer.Disabled},
		"checks disabled":  {"2", "0", "4", "2", balancer.HealthUnknown, balancer.Ready},
		"without checks":   {"2", "0", "0", "0", balancer.HealthUnknown, balancer.Ready},
		"inherits a drain": {"2", "16", "4", "6", balancer.Up, balancer.Draining},
	} {
		line := "3 web 1 one 10.0.0.1 " + test.opState + " " + test.admin + " 10 10 1 6 3 " + test.health + " " + test.check +
			" 0 0 0 - 80 - 0 0 - - 0\n"
		servers, err := readState("1\n"+stateHeader+line+"\n", "web")
		if err == nil {
			err = readStatistics(stats+itsStats+"\n", "web", servers)
		}
		if err != nil {
			t.Fatal(err)
		}
		s := servers[0].status("i")
		if s.Health != test.want || s.State != test.state || s.Connections != 7 || s.Weight != 10 ||
			s.DefaultWeight != 10 || s.Port != 80 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// An unknown or incomplete answer is an error.
//
// proves LB-3
func TestAnswersThatAreRefused(t *testing.T) {
	for says, text := range map[string]string{
		"cut off":                  "1\n" + stateHeader + aServer,
		"the answer was cut off":   "1\n" + stateHeader + aServer[:20],
		"with version 1":           "2\n" + stateHeader + aServer + "\n",
		"not with version 1":       "\n\n",
		"no names of fields":       "1\n" + aServer + "\n",
		"has 26 fields and not 25": "1\n" + stateHeader + strings.TrimSpace(aServer) + " x\n\n",
		"about backend \"shop\"":   "1\n" + stateHeader + strings.Replace(aServer, "web", "shop", 1) + "\n",
		"is there twice":           "1\n" + stateHeader + aServer + aServer + "\n",
		"srv_port: \"x\" is no":    "1\n" + stateHeader + strings.Replace(aServer, " 80 ", " x ", 1) + "\n",
		"no field srv_check_state": "1\n" + strings.Replace(stateHeader, "srv_check_state", "srv_check", 1) + aServer + "\n",
		"no such backend":          "Can't find backend.\n\n",
	} {
		if servers, err := readState(text, "web"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v, want %q", text, servers, err, says)
		}
	}
	for says, text := range map[string]string{
		"cut off":                 stats + itsStats,
		"not with names":          itsStats + "\n",
		"wrong number of fields":  stats + "web,one\n\n",
		"no field scur":           strings.Replace(stats, "scur", "s", 1) + itsStats + "\n",
		"about backend":           stats + "shop" + itsStats[3:] + "\n",
		"scur: \"x\"":             stats + strings.Replace(itsStats, ",5,", ",x,", 1) + "\n",
		"scur: \"-5\"":            stats + strings.Replace(itsStats, ",5,", ",-5,", 1) + "\n",
		"changed while they were": stats + anotherStat + "\n",
		"servers changed":         stats + itsStats + anotherStat + "\n",
		"no such backend":         "No such proxy.\n\n",
	} {
		if err := readStatistics(text, "web", []server{{name: "one", checked: true, checkable: true}}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// FuzzAnswers reads anything for what HAProxy answers.
//
// proves SEC-5
func FuzzAnswers(f *testing.F) {
	f.Add("1\n"+stateHeader+aServer+"\n", stats+itsStats+"\n")
	f.Add("", "")
	f.Add("1\n# \n\n", "# \n\n")
	f.Fuzz(func(t *testing.T, state, statistics string) {
		servers, err := readState(state, "web")
		if err != nil {
			return
		}
		for _, s := range servers {
			if s.name == "" {
				t.Errorf("a server without a name: %+v", s)
			}
		}
		_ = readStatistics(statistics, "web", servers) // it may fail, and must not panic
	})
}

// A long answer is cut between two characters.
func TestQuoted(t *testing.T) {
	for _, before := range []string{"", "x", "xx"} {
		if text := quoted(before + strings.Repeat("€", maxSaid)); !utf8.ValidString(text) || len(text) < maxSaid {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}
