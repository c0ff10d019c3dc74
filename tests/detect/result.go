package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const resultFile = "result.json"

// result is what a run has measured. Times are in seconds.
type result struct {
	At         time.Time `json:"at"`
	Processors int       `json:"processors"`
	Interval   float64   `json:"report_interval"`
	LeaseTTL   float64   `json:"lease_ttl"`
	Replicas   int       `json:"replicas"`
	Machines   int       `json:"machines"`
	Pace       float64   `json:"pace"`
	EtcdWrite  *spread   `json:"etcd_write"` // duration of a write to etcd
	Scenarios  []figures `json:"scenarios"`
	Unasked    []string  `json:"unasked,omitempty"` // verdicts on machines without a fault
	Notes      []string  `json:"notes,omitempty"`   // storms, flapping, disturbances
	Met        bool      `json:"met"`               // every target met, and every trial as expected
}

// figures are one scenario's, from the fault on.
type figures struct {
	Scenario    string   `json:"scenario"`
	What        string   `json:"what"`
	Trials      int      `json:"trials"`
	Suspect     *spread  `json:"suspect,omitempty"` // nil if there is no suspicion before the verdict
	Verdict     *spread  `json:"verdict"`
	Replacement *spread  `json:"replacement"`
	Target      float64  `json:"target"` // for the p99 of the replacement
	Why         string   `json:"target_is"`
	Wrong       []string `json:"wrong,omitempty"` // trials with an unexpected end
	Met         bool     `json:"met"`
}

// spread is a distribution of durations.
type spread struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// spreadOf returns the duration that a share of all does not exceed; nil if there are none.
func spreadOf(all []time.Duration) *spread {
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	at := func(share float64) float64 { return all[int(math.Ceil(share*float64(len(all))))-1].Seconds() }
	return &spread{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// sumUp summarizes trials.
func (b *bench) sumUp(todo []scenario, outcomes map[string][]*trial) result {
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	r := result{
		At: time.Now().UTC().Truncate(time.Second), Processors: runtime.NumCPU(), Interval: b.cfg.Interval.Seconds(),
		LeaseTTL: b.cfg.leaseTTL().Seconds(),
		Replicas: b.cfg.Replicas, Machines: b.webSize(todo), Pace: b.cfg.Pace.Seconds(), EtcdWrite: spreadOf(b.writes),
		Unasked: b.ledger.unasked, Notes: b.ledger.notes, Met: len(b.ledger.unasked) == 0,
	}
	for _, s := range todo {
		f := sumUpOne(s, b.cfg, outcomes[s.name])
		r.Met = r.Met && f.Met
		r.Scenarios = append(r.Scenarios, f)
	}
	return r
}

func sumUpOne(s scenario, cfg config, trials []*trial) figures {
	f := figures{Scenario: s.name, What: s.what, Trials: len(trials), Target: s.target(cfg).Seconds(), Why: s.why}
	var suspects, verdicts, replacements []time.Duration
	for _, t := range trials {
		if !t.Suspect.IsZero() {
			suspects = append(suspects, t.Suspect.Sub(t.Harmed))
		}
		if t.Judged != s.verdict || t.VerdictRule != s.rule || t.ReplacedRule != s.replaced {
			f.Wrong = append(f.Wrong, fmt.Sprintf("%s: judged %q by %s and replaced by %s; should be %q by %s and %s",
				t.Victim, t.Judged, t.VerdictRule, t.ReplacedRule, s.verdict, s.rule, s.replaced))
			continue
		}
		verdicts = append(verdicts, t.Verdict.Sub(t.Harmed))
		replacements = append(replacements, t.Replaced.Sub(t.Harmed))
	}
	f.Suspect, f.Verdict, f.Replacement = spreadOf(suspects), spreadOf(verdicts), spreadOf(replacements)
	f.Met = len(f.Wrong) == 0 && f.Replacement != nil && f.Replacement.P99 <= f.Target
	return f
}

func writeResult(path string, r result) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func readResult(path string) (r result, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(data, &r)
}

func (r result) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

func (s *spread) String() string {
	if s == nil {
		return "-\t-\t-"
	}
	return fmt.Sprintf("%.2f\t%.2f\t%.2f", s.P50, s.P99, s.Max)
}

// writeTable writes the figures for people, as Markdown that is readable as text.
func (r result) writeTable(w io.Writer) error {
	fmt.Fprintf(w,
		"%s, %d processors, %d coordinator(s), %d machines, report interval %gs, lease %gs; seconds from the fault on\n\n",
		r.At.Format("2006-01-02"), r.Processors, r.Replicas, r.Machines, r.Interval, r.LeaseTTL)
	if e := r.EtcdWrite; e != nil {
		fmt.Fprintf(w, "A write to etcd took %.1f ms (p50) to %.1f ms (p99) meanwhile.\n\n", e.P50*1000, e.P99*1000)
	}
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.Debug)
	row := func(cells ...string) {
		fmt.Fprintf(t, "| %s\t\n", strings.ReplaceAll(strings.Join(cells, "\t"), "\t", "\t "))
	}
	row("harm", "trials", "suspect p50\tp99\tmax", "verdict p50\tp99\tmax", "replacement p50\tp99\tmax",
		"target for p99", "met")
	row(slices.Repeat([]string{"---"}, 13)...)
	for _, f := range r.Scenarios {
		met := "yes"
		if !f.Met {
			met = "NO"
		}
		row(f.What, fmt.Sprint(f.Trials), f.Suspect.String(), f.Verdict.String(), f.Replacement.String(),
			fmt.Sprintf("%gs (%s)", f.Target, f.Why), met)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range r.Scenarios {
		for _, wrong := range f.Wrong {
			fmt.Fprintf(w, "\nWRONG: %s: %s\n", f.Scenario, wrong)
		}
	}
	for _, u := range r.Unasked {
		fmt.Fprintf(w, "\nFALSE POSITIVE: %s\n", u)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "\nnote: %s\n", n)
	}
	return nil
}
