package web_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The course of a test of alerts, in minutes: all is well, then the fault, then all is well again.
const (
	wellBefore = 5
	faultFor   = 66 // longer than any alert waits
	wellAfter  = 20
	hour       = 60
)

// quiet is what two replicas of a shard tell to which nothing happens, by series: a leader and
// another. What these replicas have no part for stands beside it.
func quiet(t *testing.T) map[string]string {
	t.Helper()
	series := map[string]string{}
	for name, value := range everything(t).values {
		if !strings.HasPrefix(name, "leasehold_") {
			continue
		}
		series[of(name, "a")] = value
		if !strings.Contains(name, "group=") { // the leader alone tells of groups
			series[of(name, "b")] = value
		}
	}
	for _, replica := range []string{"a", "b"} {
		series[of(`leasehold_certificate_remaining_seconds{certificate="replica"}`, replica)] = "80000"
		series[of(`leasehold_certificate_remaining_seconds{certificate="agents_authority"}`, replica)] = "300000000"
		series[of(`leasehold_reports_total{result="renewed"}`, replica)] = "0+60"
		series[of(`leasehold_reports_total{result="refused"}`, replica)] = "1"
		series[of(`leasehold_provider_calls_total{call="create",provider="mem",result="done"}`, replica)] = "0+1"
		series[of(`leasehold_provider_calls_total{call="create",provider="mem",result="failed"}`, replica)] = "3"
		series[of(`leasehold_group_troubled_slots{group="web",trouble="errored"}`, "a")] = "0"
	}
	series[of("leasehold_leader", "a")], series[of("leasehold_leader", "b")] = "1", "0"
	series[of(`leasehold_group_health_ratio{group="web"}`, "a")] = "1" // its machines have no agents here
	return series
}

// of is a series as Prometheus has it from a replica.
func of(series, replica string) string {
	name, labels, labelled := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	if !labelled {
		return name + `{instance="` + replica + `"}`
	}
	return name + "{" + labels + `,instance="` + replica + `"}`
}

// alertFaults are a fault for each alert: the series that differ, and how. A rising counter is
// written as its increase per minute.
var alertFaults = map[string]map[string]string{
	"LeaseholdNoLeader":        {of("leasehold_leader", "a"): "0"},
	"LeaseholdTwoLeaders":      {of("leasehold_leader", "b"): "1"},
	"LeaseholdPictureStale":    {of("leasehold_picture_age_seconds", "b"): "30"},
	"LeaseholdCertificateEnds": {of(`leasehold_certificate_remaining_seconds{certificate="replica"}`, "b"): "3600"},
	"LeaseholdAuthorityEnds": {
		of(`leasehold_certificate_remaining_seconds{certificate="agents_authority"}`, "a"): "864000",
	},
	"LeaseholdGroupUnhealthy":        {of(`leasehold_group_health_ratio{group="web"}`, "a"): "0.5"},
	"LeaseholdStorm":                 {of(`leasehold_group_storm{group="web"}`, "a"): "1"},
	"LeaseholdSlotsGivenUp":          {of(`leasehold_group_troubled_slots{group="web",trouble="errored"}`, "a"): "1"},
	"LeaseholdSlotsFlapping":         {of(`leasehold_group_troubled_slots{group="web",trouble="flapping"}`, "a"): "1"},
	"LeaseholdRolloutStalled":        {of(`leasehold_group_rollout_stalled{group="web"}`, "a"): "1"},
	"LeaseholdSpecInvalid":           {of(`leasehold_group_spec_invalid{group="web"}`, "a"): "1"},
	"LeaseholdHeld":                  {of("leasehold_held", "a"): "1"},
	"LeaseholdEtcdHistoryGrows":      {of("leasehold_etcd_history_seconds", "a"): "14400"},
	"LeaseholdRecordsUnreadable":     {of("leasehold_unreadable_records", "a"): "1"},
	"LeaseholdMachinesWithoutRecord": {of("leasehold_orphan_machines", "a"): "2"},
	"LeaseholdRenewalsFail":          {of(`leasehold_reports_total{result="refused"}`, "b"): "1+30"},
	"LeaseholdProviderFails": {
		of(`leasehold_provider_calls_total{call="create",provider="mem",result="failed"}`, "a"): "3+2",
	},
}

// course is the values of a series: the usual value, then the value of the fault, then the usual
// one again.
func course(usual, fault string) string {
	start := func(v string) string {
		before, _, _ := strings.Cut(v, "+")
		return before
	}
	step := func(v string) string {
		if _, after, rises := strings.Cut(v, "+"); rises {
			return after
		}
		return "0"
	}
	if step(fault) != "0" { // the counter does not fall when the fault is over
		a, _ := strconv.Atoi(start(fault))
		b, _ := strconv.Atoi(step(fault))
		return fmt.Sprintf("%d+0x%d %d+%dx%d %d+0x%d", a, wellBefore, a, b, faultFor, a+b*faultFor, wellAfter)
	}
	return fmt.Sprintf("%s+0x%d %s+0x%d %s+0x%d", usual, wellBefore, fault, faultFor, usual, wellAfter)
}

// Each alert is silent in an hour in which nothing happens, fires by its fault, and is silent again
// when that is over; no other alert fires for it. Prometheus' own promtool evaluates the alerts, on
// what two replicas tell.
//
// proves OBS-2
func TestEachAlertFiresByItsFaultAlone(t *testing.T) {
	t.Parallel()
	rules, err := filepath.Abs("../../docs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	var alerts []string
	for line := range strings.Lines(string(text)) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "- alert: "); is {
			alerts = append(alerts, name)
		}
	}
	slices.Sort(alerts)
	if known := slices.Sorted(maps.Keys(alertFaults)); !slices.Equal(known, alerts) {
		t.Fatalf("there are faults for %v, and the alerts are %v", known, alerts)
	}
	usual := quiet(t)
	maps.DeleteFunc(usual, func(series, _ string) bool { // no alert reads it
		name, _, _ := strings.Cut(series, "{")
		return !strings.Contains(string(text), name)
	})
	type m = map[string]any
	var tests []m
	firing := func(minute int, names ...string) m {
		samples := []m{}
		for _, name := range names {
			samples = append(samples, m{"labels": `{alertname="` + name + `"}`, "value": 1})
		}
		return m{
			"expr":      `group by (alertname) (ALERTS{alertstate=~"firing|pending"})`,
			"eval_time": fmt.Sprintf("%dm", minute), "exp_samples": samples,
		}
	}
	for _, alert := range append(alerts, "") { // "": no fault
		fault := alertFaults[alert]
		var input []m
		for _, series := range slices.Sorted(maps.Keys(usual)) {
			values := fmt.Sprintf("%s+0x%d", usual[series], wellBefore+faultFor+wellAfter)
			if strings.Contains(usual[series], "+") {
				values = fmt.Sprintf("%sx%d", usual[series], wellBefore+faultFor+wellAfter)
			}
			if changed, is := fault[series]; is {
				values = course(usual[series], changed)
			}
			input = append(input, m{"series": series, "values": values})
		}
		for series := range fault {
			if _, told := usual[series]; !told {
				t.Errorf("%s: no replica tells %s", alert, series)
			}
		}
		looks := []m{
			firing(wellBefore), firing(wellBefore+faultFor-1, alert), firing(wellBefore + faultFor + wellAfter - 1),
		}
		if alert == "" {
			looks = []m{firing(hour / 2), firing(hour), firing(hour + wellAfter)}
		}
		tests = append(tests, m{"name": alert, "interval": "1m", "input_series": input, "promql_expr_test": looks})
	}
	// JSON is YAML, too
	document, err := json.Marshal(m{"rule_files": []string{rules}, "evaluation_interval": "1m", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "alerts_test.json")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, said)
	}
}
