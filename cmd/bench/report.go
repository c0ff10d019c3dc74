package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
)

// result ends a bench: it prints the JSON document, or calls show, and returns the exit code of the
// verdict.
func (inv *Invocation) result(document any, v trial.Verdict, show func() error) error {
	done, err := inv.records(document)
	if !done {
		err = show()
	}
	if err != nil {
		return err
	}
	if !v.Carries {
		return program.Fail(program.Failed, "", "%s", v.Text)
	}
	return nil
}

// newTable returns a table of two columns, name and value.
func newTable() output.Table {
	return output.Table{Columns: []output.Column{{Title: "WHAT"}, {Title: "HOW MUCH"}}}
}

func showTimes(t trial.Times) string {
	if t.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("p50 %s  p99 %s  max %s", showMillis(t.P50), showMillis(t.P99), showMillis(t.Max))
}

func showMillis(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.2fs", ms/1000)
	}
	return fmt.Sprintf("%.1fms", ms)
}

// showSetting prints the parameters of a trial.
func showSetting(r trial.Setting) string {
	how := "each with its own connection over TLS"
	if r.Shared > 0 {
		how = fmt.Sprintf("on %s, unsecured", output.Counted(r.Shared, "connection", "connections"))
	}
	seconds := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	return fmt.Sprintf("%d every %s, lease %s, %s", r.Agents, seconds(r.Interval), seconds(r.LeaseTTL), how)
}

func addProcesses(t *output.Table, all []trial.Process) {
	for _, p := range all {
		t.Add("process "+p.Name, fmt.Sprintf("%.2f cores  %s (most %s)  %d descriptors", p.Cores,
			output.Bytes(p.Memory), output.Bytes(p.MostMemory), p.Descriptors))
	}
}

// write prints the table, the errors, and a good verdict. A bad verdict is returned as an error.
func (inv *Invocation) write(t *output.Table, wrongly []string, troubles map[string]int, v trial.Verdict) error {
	if err := t.Write(inv.screen(), inv.wide()); err != nil {
		return err
	}
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(troubles)) {
		fmt.Fprintf(&b, "agents: %d times %s\n", troubles[what], output.OneLine(what))
	}
	for _, w := range wrongly {
		fmt.Fprintf(&b, "wrongly: %s\n", output.OneLine(w))
	}
	if v.Carries {
		b.WriteString(v.Text + "\n")
	}
	_, err := io.WriteString(inv.env.Stdout, b.String())
	return err
}
