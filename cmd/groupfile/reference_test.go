package groupfile

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/store"
)

var update = flag.Bool("update", false, "rewrite docs/group-file.md")

const reference = "../../docs/group-file.md"

// The reference page matches the table of fields. Rewrite it with: go test ./cmd/groupfile -update
func TestReferenceIsTheTable(t *testing.T) {
	want := referencePage()
	if *update {
		if err := os.WriteFile(reference, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what store.Fields says: run go test ./cmd/groupfile -update", reference)
	}
}

// The example on the page is a group that Read takes.
func TestReferenceExampleIsValid(t *testing.T) {
	groups, err := Read("example", strings.NewReader(example))
	if err != nil || len(groups) != 1 {
		t.Fatalf("got %v, %v", groups, err)
	}
}

const example = `name: web
size: 6
labels: {team: shop}
provider: process
template:
  zones: [a, b]
workload:
  run: ["./web", "--port", "${port}"]
vars: {greeting: hello}
report: {interval: 5s}
checks:
- http: {port: "${port}", path: /healthz}
  interval: 2s
budget: {max_expansion: 2}
`

func referencePage() string {
	var b strings.Builder
	b.WriteString(`# The group file

<!-- Written by go test ./cmd/groupfile -update from store.Fields. Do not edit. -->

A group is what an operator wants: so many machines, of this kind, in this health. It is written in YAML (or JSON, which
is YAML too), one group in each document of a file:

` + "```yaml\n" + example + "```" + `

` + "`leasehold group apply -f web.yaml`" + ` makes it so, ` + "`leasehold group diff -f web.yaml`" + ` shows what that would change. What is
left out has its default. Anything that cannot be is refused, all at once, each with file, line and column:

` + "```\nerror: budget.max_expanson: unknown field: did you mean budget.max_expansion? (web.yaml:4:3)\n" +
		"error: report.interval: 10ms: must be 1s to 5m0s (DET-1) (web.yaml:6:13)\n```" + `

Text stays text and numbers stay numbers: ` + "`port: 8080`" + ` under ` + "`vars`" + ` is refused, ` + "`port: \"8080\"`" + ` is meant. Durations are written
like ` + "`5s`, `1m30s`, `2h`" + fmt.Sprintf(`. A file holds at most %d groups and %d KiB; aliases and merge keys are refused.
`, MaxGroups, yamlfile.MaxBytes>>10) + `
A check is of exactly one kind: ` + "`http`, `tcp`, `grpc`, `exec` or `process`" + `. In every text of it, ` + "`${name}`" + ` stands for a variable or a fact
of the machine, as in ` + "`workload.run`" + ` (of a machine of the process provider: ` + "`address`, `host`, `port`, `dir`" + `), written with quotes: ` + "`port: \"${port}\"`" + `; ` + "`$${`" + ` is a literal ` + "`${`" + `.
In a group of the process provider a placeholder that neither a variable nor a fact fills is refused, in ` + "`workload.run`, `report.on_lease_lost.run`, `drain.hook`" + ` and
checks: no agent could expand it. What is set beside a static group may fill the placeholders of what stands in etcd; a file for ` + "`config apply`" + `
names every variable that it uses. A new or restarted instance passes a check once it has passed
` + "`healthy_threshold`" + ` times in a row, the first time at once. A change of checks is brought to instances that run one after the other,
without a restart; each keeps its verdict until the new checks have come to theirs.

Settings that commands make are not part of a file, and applying a file keeps them: ` + "`leasehold group pause`, `resume`, `stop`, `start`, `restart`" + `
and ` + "`delete`" + `.

A file for ` + "`leasehold config apply`" + ` has the same fields. Beside such a static group, a file for ` + "`leasehold group apply`" + ` may set
` + "`size`, `template.instance_type` and `vars`" + ` only, and need not name a provider; what it leaves out is as the static group says.

## What a change reaches

The last column of the table says how a change comes to the instances that there are:

- **at once**: the coordinator uses the new value from its next plan of the group on.
- **by roll**: the change is brought to one instance after the other, as ` + "`budget` and `rollout`" + ` allow, with the least that does it (ROLL-2).
  Another ` + "`provider` or `template`" + ` needs a new machine, another ` + "`workload.run`" + ` or other ` + "`secrets`" + ` a restart. New ` + "`vars`" + ` are sent to the agent, live: the program
  that runs has them from its next start on. It is restarted for them only if its arguments name them, or with ` + "`rollout.minimal_action: restart`" + `.
- **later**: an instance keeps what it was made with. New instances have the new value, and so has one that a roll brings up to date for another
  reason; its agent learns of ` + "`report`" + ` when it opens its next stream. ` + "`leasehold group restart`" + ` brings it to all, under the budgets.

` + "`leasehold group apply --dry-run`" + ` says it of each field that differs.

## Fields

| Field | Type | Default | Allowed | Meaning | Rule | A change comes |
|---|---|---|---|---|---|---|
`)
	for _, f := range store.Fields {
		def := "`" + f.Default + "`"
		switch {
		case f.Default == "":
			def = "must be given"
		case strings.Contains(f.Default, " ") || f.Default == "none":
			def = f.Default
		}
		change := string(store.ReachOf(f.Path))
		if f.Path == "name" {
			change = "never: it is another group" // applying it under another name does not change the first group
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", f.Path, f.Type, def, cell(f.Allowed), cell(f.Doc),
			f.Rule, change)
	}
	b.WriteString("\n## Not in this version\n\nThese fields are promised and refused for now, " +
		"so that no file says what nothing does:\n\n")
	for _, p := range store.Planned {
		fmt.Fprintf(&b, "- `%s`\n", p)
	}
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
