package tests

import (
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ban is something that some of the source must not do.
type ban struct {
	name string
	why  string
	// find returns every place of the file that breaks the ban.
	find func(f sourceFile) []breach
}

// breach is a place that breaks a ban.
type breach struct {
	pos  token.Pos
	what string
}

// bans are all of them. The order follows the layers, from the core outwards; then come habits.
var bans = []ban{
	{
		name: "contracts stand alone",
		why: "store and provider are the words that everything else is written in, and durable is for all who write files: " +
			"what they import, every part of the project imports. Only the standard library is stable enough for that, and " +
			"what checks the templates and schedules in a group, which is a part of the store's contract",
		find: refuseImports(
			func(f sourceFile) bool {
				return slices.Contains([]string{"store", "store/filetemplate", "provider", "provider/durable"}, f.folder()) &&
					!f.test()
			},
			func(_ sourceFile, p string) bool {
				return !standard(p) && p != module+"/store/filetemplate" && p != module+"/store/cron"
			}),
	},
	{
		name: "plan knows records alone",
		why: "the planner also runs in dry runs, simulations and an operator's shell: it may know the records it " +
			"decides about, their sentences, what a load balancer lists, what a load asks for and the order of versions " +
			"(store, coordinator/reason, provider/balancer, coordinator/scale, coordinator/query, agent/version) and " +
			"nothing that acts",
		find: refuseImports(product("coordinator/plan"), func(_ sourceFile, p string) bool {
			return !standard(p) && p != module+"/store" && p != module+"/coordinator/reason" &&
				p != module+"/coordinator/scale" && p != module+"/coordinator/query" && p != module+"/provider/balancer" &&
				p != module+"/agent/version" &&
				!within(p, module+"/coordinator/plan")
		}),
	},
	{
		name: "plan does nothing",
		why: "plan.Compute is a function of its arguments: no I/O, no waiting, no logging, no chance. Whatever it " +
			"needs to know belongs into the snapshot",
		find: refuseImports(product("coordinator/plan"), func(_ sourceFile, p string) bool {
			return withinAny(p, "context", "net", "os", "log", "io", "syscall", "sync", "crypto/rand")
		}),
	},
	{
		name: "plan has no clock",
		why: "two computations on one snapshot must give one plan, today and in a test: the shell reads the clock " +
			"once and passes now",
		find: func(f sourceFile) []breach {
			if !product("coordinator/plan")(f) {
				return nil
			}
			return readsClock(f)
		},
	},
	{
		name: "plan starts nothing",
		why:  "a goroutine in the planner would make its result depend on scheduling",
		find: func(f sourceFile) []breach {
			if !product("coordinator/plan")(f) {
				return nil
			}
			return startsGoroutine(f)
		},
	},
	{
		name: "evidence has no clock, chance or I/O",
		why: "a simulator runs the same code in virtual time, and a seed must repeat it to the byte: time and jitter come " +
			"with its Config",
		find: func(f sourceFile) []breach {
			if !product("coordinator/evidence")(f) {
				return nil
			}
			found := append(readsClock(f), startsGoroutine(f)...)
			return append(found, refuseImports(product("coordinator/evidence"), func(_ sourceFile, p string) bool {
				return within(p, "math/rand") || within(p, "log") || within(p, "net") || p == "os" || p == "context" ||
					p == "crypto/rand"
			})(f)...)
		},
	},
	{
		name: "leader has no clock, goroutine or I/O",
		why: "a simulator drives the same code in virtual time, and a seed must repeat it to the byte: " +
			"every method takes the time, and the shell around it waits, calls and writes",
		find: func(f sourceFile) []breach {
			in := product("coordinator/leader")
			if !in(f) {
				return nil
			}
			found := append(readsClock(f), startsGoroutine(f)...)
			return append(found, refuseImports(in, func(_ sourceFile, p string) bool {
				return withinAny(p, "context", "net", "os", "log", "io", "syscall", "sync", "crypto/rand", "math/rand")
			})(f)...)
		},
	},
	{
		name: "simulated worlds have no clock, goroutine or I/O",
		why: "a seed must repeat a world to the byte, on any machine and however fast: " +
			"it knows records, providers and the pure parts of the coordinator, and nothing that waits, reads or runs beside it",
		find: func(f sourceFile) []breach {
			in := func(f sourceFile) bool { return product("coordinator/sim")(f) || imaginary(f) }
			if !in(f) {
				return nil
			}
			found := append(readsClock(f), startsGoroutine(f)...)
			return append(found, refuseImports(in, func(_ sourceFile, p string) bool {
				own := slices.Contains([]string{
					module + "/store", module + "/provider", module + "/provider/balancer", module + "/coordinator/cache",
					module + "/coordinator/evidence", module + "/coordinator/plan",
					module + "/coordinator/leader", module + "/coordinator/query", module + "/provider/fake",
				}, p)
				return !standard(p) && !own ||
					withinAny(p, "context", "net", "os", "log", "io", "syscall", "sync", "crypto/rand")
			})(f)...)
		},
	},
	{
		name: "coordinator without etcd",
		why: "the coordinator speaks to store.Store: that is what lets its loops be tested on a store in memory " +
			"whose leases expire and whose answers get lost on demand",
		find: refuseImports(
			func(f sourceFile) bool { return within(f.folder(), "coordinator") },
			func(_ sourceFile, p string) bool { return etcd(p) }),
	},
	{
		name: "etcd behind its adapters",
		why: "etcd's traps (late renewals, restarts that stretch time, cancelled watches) are handled in one place; " +
			"elsewhere go through store/etcdstore or store/embedetcd",
		find: refuseImports(
			func(f sourceFile) bool {
				return !withinAny(f.folder(), "store/etcdstore", "store/embedetcd", "coordinator", "cmd", "tests")
			},
			func(_ sourceFile, p string) bool { return etcd(p) }),
	},
	{
		name: "agent knows no coordinator",
		why: "the agent is a small static binary on every machine, with no access to etcd: it knows its protocol and " +
			"the bootstrap document (provider), nothing of what lies behind the stream",
		find: refuseImports(product("agent"), func(_ sourceFile, p string) bool {
			return withinAny(p, module+"/store", module+"/coordinator") || adapter(p) != ""
		}),
	},
	{
		name: "adapters stand apart",
		why: "an adapter that needs another drags its technology along; what two share belongs into the contract, " +
			"or is handed over by cmd",
		find: refuseImports(
			func(f sourceFile) bool { return adapter(module+"/"+f.folder()) != "" && !f.test() },
			func(f sourceFile, p string) bool {
				return adapter(p) != "" && adapter(p) != adapter(module+"/"+f.folder())
			}),
	},
	{
		name: "cmd chooses adapters",
		why: "which database and which provider is a choice of the program, made in cmd (and in tests); everything " +
			"else takes store.Store and provider.Provider",
		find: refuseImports(
			func(f sourceFile) bool {
				return !f.test() && !withinAny(f.folder(), "cmd", "tests", "agent") &&
					adapter(module+"/"+f.folder()) == ""
			},
			func(_ sourceFile, p string) bool { return adapter(p) != "" }),
	},
	{
		name: "nothing builds on cmd",
		why: "cmd is the wiring of programs: what others need belongs into a package below neither cmd nor tests. " +
			"Any test may ask tests/tier in which tier it runs and tests/ports for a free port, " +
			"start programs with tests/harness, and look at pages with tests/browser",
		find: refuseImports(
			func(f sourceFile) bool { return !withinAny(f.folder(), "cmd", "tests") },
			func(f sourceFile, p string) bool {
				open := f.forTests() && slices.Contains([]string{
					module + "/tests/tier", module + "/tests/ports", module + "/tests/harness", module + "/tests/browser",
				}, p)
				return !open && (within(p, module+"/cmd") || within(p, module+"/tests"))
			}),
	},
	{
		name: "a crowd knows what agents know",
		why: "a simulated agent that looked anything up behind its stream would prove nothing about one " +
			"that cannot: of the coordinator it needs the authority that makes its certificates, and of records nothing",
		find: refuseImports(product("cmd/bench/crowd"), func(_ sourceFile, p string) bool {
			return withinAny(p, module+"/store", module+"/provider") || within(p, module+"/coordinator") &&
				p != module+"/coordinator/pki"
		}),
	},
	{
		name: "benches alone have crowds",
		why: "the crowd's streams cut every corner that an agent on a machine must not cut: " +
			"nothing else is to speak through them",
		find: refuseImports(
			func(f sourceFile) bool { return !withinAny(f.folder(), "cmd/bench", "tests") },
			func(_ sourceFile, p string) bool { return within(p, module+"/cmd/bench/crowd") }),
	},
	{
		name: "kong and tint in cmd",
		why:  "the grammar of the command line and coloured logs are matters of a program that a person runs",
		find: refuseImports(
			func(f sourceFile) bool { return !within(f.folder(), "cmd") },
			func(_ sourceFile, p string) bool {
				return withinAny(p, "github.com/alecthomas/kong", "github.com/jotaen/kong-completion",
					"github.com/lmittmann/tint")
			}),
	},
	{
		name: "one terminal program",
		why:  "what redraws a terminal must restore it however it ends; other commands print lines",
		find: refuseImports(
			func(f sourceFile) bool { return !within(f.folder(), "cmd/top") },
			func(_ sourceFile, p string) bool {
				return withinAny(p, "charm.land", "github.com/charmbracelet")
			}),
	},
	{
		name: "views are made from memory",
		why: "who reads the page must cost etcd nothing: a view is a function of the cache, the journal in memory " +
			"and the time, and the terminal and the API show the same",
		find: refuseImports(product("coordinator/view"), func(_ sourceFile, p string) bool {
			own := slices.Contains([]string{
				module + "/store", module + "/coordinator/cache", module + "/coordinator/journal", module + "/coordinator/reason",
				module + "/coordinator/story", module + "/coordinator/review",
			}, p)
			return !standard(p) && !own || withinAny(p, "context", "net", "os", "log", "html")
		}),
	},
	{
		name: "prometheus in web",
		why: "who has something to count tells it through an interface of its own, so that numbers can " +
			"be told in another way and a test needs no registry",
		find: refuseImports(
			func(f sourceFile) bool { return f.folder() != "coordinator/web" },
			func(_ sourceFile, p string) bool { return within(p, "github.com/prometheus") }),
	},
	{
		name: "xDS and DNS in their servers",
		why: "Envoy's messages are large, and what is in service is decided in coordinator/discovery, " +
			"whatever clients speak. Tests may speak to a server",
		find: refuseImports(
			func(f sourceFile) bool {
				return !f.forTests() && !withinAny(f.folder(), "coordinator/discovery/xdsserver", "coordinator/discovery/dnsserver")
			},
			func(_ sourceFile, p string) bool {
				return withinAny(p, "github.com/envoyproxy", "github.com/miekg/dns", "google.golang.org/grpc/xds")
			}),
	},
	{
		name: "yaml in cmd",
		why: "YAML is how operators write groups; behind the command line everything is a record, and JSON in the " +
			"store. A second reader of YAML would be a second truth about unknown fields and line numbers",
		find: refuseImports(
			func(f sourceFile) bool { return !within(f.folder(), "cmd") },
			func(_ sourceFile, p string) bool {
				return withinAny(p, "go.yaml.in/yaml", "gopkg.in/yaml.v2", "gopkg.in/yaml.v3", "sigs.k8s.io/yaml",
					"github.com/goccy/go-yaml")
			}),
	},
	{
		name: "log/slog alone",
		why:  "logs have levels and stable keys; take a *slog.Logger through Deps",
		find: refuseImports(everywhere, func(_ sourceFile, p string) bool {
			return p == "log" || withinAny(p, "github.com/sirupsen/logrus", "k8s.io/klog")
		}),
	},
	{
		name: "no tests in the product",
		why:  "what only tests need must not be linked into a program that runs on every machine",
		find: refuseImports(
			func(f sourceFile) bool { return !f.forTests() },
			func(_ sourceFile, p string) bool {
				return withinAny(p, "testing", "go.uber.org/goleak", "pgregory.net/rapid",
					"github.com/anishathalye/porcupine") ||
					within(p, module) && suite(p) || p == module+"/tests/tier"
			}),
	},
	{
		name: "names say something",
		why:  "a name like this says nothing: name the package or file for what it decides or holds",
		find: func(f sourceFile) (found []breach) {
			file := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.path), ".go"), "_test")
			names := append(strings.Split(f.folder(), "/"), f.tree.Name.Name, file)
			for _, n := range names {
				if slices.Contains(emptyNames, n) {
					return []breach{{f.tree.Name.Pos(), "is called " + n}}
				}
			}
			return nil
		},
	},
	{
		name: "one seed every day",
		why: "two runs of the everyday tier on the same source must say the same: a property draws from " +
			"a fixed seed there, which tests/tier sets for who imports it, and from fresh ones at night",
		find: func(f sourceFile) []breach {
			if f.folder() == "tests/tier" {
				return nil
			}
			var seeded bool
			var draws token.Pos
			for _, spec := range f.imported() {
				switch p, _ := strconv.Unquote(spec.Path.Value); p {
				case module + "/tests/tier":
					seeded = true
				case "pgregory.net/rapid":
					draws = spec.Pos()
				}
			}
			if seeded || !draws.IsValid() {
				return nil
			}
			return []breach{{draws, "imports rapid without tests/tier"}}
		},
	},
	{
		name: "reasons are made of records alone",
		why: "the planner calls coordinator/reason, and pages and webhooks will call it and coordinator/story: both are " +
			"functions of the records (store), without I/O",
		find: refuseImports(
			func(f sourceFile) bool { return product("coordinator/reason")(f) || product("coordinator/story")(f) },
			func(_ sourceFile, p string) bool {
				return !standard(p) && p != module+"/store" && p != module+"/coordinator/reason" ||
					withinAny(p, "context", "net", "os", "log", "io", "syscall", "sync", "math/rand", "crypto/rand")
			}),
	},
	{
		name: "nothing reads a reason out of a text",
		why: "the planner says why in fields (store.Blocked, store.Cause, store.Fact, store.Counterfactual), and " +
			"coordinator/reason renders them: a program that takes the sentences apart breaks when one of them is worded better",
		find: func(f sourceFile) []breach {
			for _, shows := range []string{
				"cmd/cli", "cmd/foresee", "cmd/top", "coordinator/web", "coordinator/story", "coordinator/review",
				"coordinator/api", "coordinator/webhook",
			} {
				if product(shows)(f) {
					return readsReasons(f)
				}
			}
			return nil
		},
	},
	{
		name: "a simulation sums up by fields",
		why: "the timeline of a scenario sums up decisions of a kind: by their effect and cause (reason.FoldedEffect, " +
			"reason.FoldedCause), not by patterns over their sentences",
		find: refuseImports(product("cmd/scenario"), func(_ sourceFile, p string) bool { return p == "regexp" }),
	},
	{
		name: "what shows decisions decides nothing by a rule's ID",
		why: "a rule names the promise that a decision keeps. What kind of decision it is, its fields say; a rule may get " +
			"a second kind of decision, or a decision another rule",
		find: func(f sourceFile) []breach {
			for _, shows := range []string{"cmd", "coordinator/web", "coordinator/api", "coordinator/webhook"} {
				if product(shows)(f) {
					return comparesRules(f)
				}
			}
			return nil
		},
	},
	{
		name: "no sleep in tests",
		why: "a sleep is too short on a slow machine and too long on every other: wait for the event, or poll with a " +
			"deadline; in a synctest bubble receive from time.After",
		find: func(f sourceFile) []breach {
			if !f.forTests() {
				return nil
			}
			return uses(f, "time", "Sleep")
		},
	},
	{
		name: "no skipped tests",
		why:  "a skipped test proves nothing and looks as if it did: provide what it needs, or remove it",
		find: func(f sourceFile) (found []breach) {
			if !f.forTests() {
				return nil
			}
			running := testParameters(f)
			f.selectors(func(x, sel string, pos token.Pos) {
				if slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel) && running[x] {
					found = append(found, breach{pos, "calls " + x + "." + sel})
				}
			})
			return append(found, uses(f, "testing", "Short")...)
		},
	},
}
