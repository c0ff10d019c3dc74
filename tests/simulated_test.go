package tests

import (
	"slices"
	"testing"
)

// simulated are files that do not exist, each with the bans that must refuse it: none for what must
// stay allowed.
var simulated = []struct {
	path, text string
	refused    []string
}{
	{"store/x.go", `package store; import _ "github.com/google/uuid"`, []string{"contracts stand alone"}},
	{
		"store/x.go", `package store; import _ "go.etcd.io/etcd/api/v3/mvccpb"`,
		[]string{"contracts stand alone", "etcd behind its adapters"},
	},
	{"provider/x.go", `package provider; import _ "` + module + `/store"`, []string{"contracts stand alone"}},
	{"store/x.go", `package store; import _ "encoding/json"`, nil},
	{"store/x_test.go", `package store; import (_ "pgregory.net/rapid"; _ "` + module + `/tests/tier")`, nil},
	{"store/x_test.go", `package store; import _ "pgregory.net/rapid"`, []string{"one seed every day"}},
	{
		"store/x.go", `package store; import _ "github.com/anishathalye/porcupine"`,
		[]string{"contracts stand alone", "no tests in the product"},
	},
	{
		"store/x.go", `package store; import _ "pgregory.net/rapid"`,
		[]string{"contracts stand alone", "no tests in the product", "one seed every day"},
	},

	{"coordinator/plan/x.go", `package plan; import _ "` + module + `/store"`, nil},
	{"coordinator/plan/x.go", `package plan; import _ "` + module + `/provider"`, []string{"plan knows records alone"}},
	{
		"coordinator/plan/x.go", `package plan; import _ "` + module + `/coordinator/cache"`,
		[]string{"plan knows records alone"},
	},
	{"coordinator/plan/x.go", `package plan; import _ "github.com/google/uuid"`, []string{"plan knows records alone"}},
	{"coordinator/plan/x.go", `package plan; import _ "context"`, []string{"plan does nothing"}},
	{"coordinator/plan/x.go", `package plan; import _ "net/http"`, []string{"plan does nothing"}},
	{"coordinator/plan/x.go", `package plan; import _ "os"`, []string{"plan does nothing"}},
	{"coordinator/plan/budget/x.go", `package budget; import _ "log/slog"`, []string{"plan does nothing"}},
	{"coordinator/plan/x.go", `package plan; import "time"; var _ = time.Now()`, []string{"plan has no clock"}},
	{"coordinator/plan/x.go", `package plan; import "time"; var now = time.Now`, []string{"plan has no clock"}},
	{
		"coordinator/plan/x.go", `package plan; import clock "time"; var _ = clock.Since(clock.Time{})`,
		[]string{"plan has no clock"},
	},
	{"coordinator/plan/x.go", `package plan; import . "time"; var _ = Now()`, []string{"plan has no clock"}},
	{
		"coordinator/plan/x.go", `package plan; import "time"; func f() { <-time.After(1) }`,
		[]string{"plan has no clock"},
	},
	{"coordinator/plan/x.go", `package plan; import "time"; var x = 3 * time.Second`, nil},
	{"coordinator/plan/x.go", `package plan; func f() { go f() }`, []string{"plan starts nothing"}},
	{"coordinator/plan/x_test.go", `package plan; import ("os"; "time"); var _, _ = os.Args, time.Now()`, nil},

	{
		"coordinator/evidence/x.go", `package evidence; import "time"; var _ = time.Now()`,
		[]string{"evidence has no clock, chance or I/O"},
	},
	{
		"coordinator/evidence/x.go", `package evidence; import _ "math/rand/v2"`,
		[]string{"evidence has no clock, chance or I/O"},
	},
	{
		"coordinator/evidence/x.go", `package evidence; import _ "log/slog"`,
		[]string{"evidence has no clock, chance or I/O"},
	},
	{
		"coordinator/evidence/x.go", `package evidence; func f() { go f() }`,
		[]string{"evidence has no clock, chance or I/O"},
	},
	{"coordinator/evidence/x.go", `package evidence; import ("sync"; _ "` + module + `/provider")`, nil},
	{"coordinator/evidence/x_test.go", `package evidence; import "time"; var _ = time.Now()`, nil},

	{
		"coordinator/leader/x.go", `package leader; import "time"; var _ = time.Now()`,
		[]string{"leader has no clock, goroutine or I/O"},
	},
	{
		"coordinator/leader/x.go", `package leader; import _ "context"`,
		[]string{"leader has no clock, goroutine or I/O"},
	},
	{
		"coordinator/leader/x.go", `package leader; func f() { go f() }`,
		[]string{"leader has no clock, goroutine or I/O"},
	},
	{"coordinator/leader/x.go", `package leader; import (_ "time"; _ "` + module + `/coordinator/evidence")`, nil},

	{
		"coordinator/sim/x.go", `package sim; import _ "` + module + `/coordinator"`,
		[]string{"simulated worlds have no clock, goroutine or I/O"},
	},
	{
		"coordinator/sim/x.go", `package sim; import "time"; var _ = time.Now()`,
		[]string{"simulated worlds have no clock, goroutine or I/O"},
	},
	{
		"coordinator/sim/x.go", `package sim; func f() { go f() }`,
		[]string{"simulated worlds have no clock, goroutine or I/O"},
	},
	{
		"coordinator/sim/x.go", `package sim; import _ "log/slog"`,
		[]string{"simulated worlds have no clock, goroutine or I/O"},
	},
	{
		"provider/fake/cloud.go", `package fake; import "time"; func f() time.Time { return time.Now() }`,
		[]string{"simulated worlds have no clock, goroutine or I/O"},
	},
	{"provider/fake/provider.go", `package fake; import "time"; func f() time.Time { return time.Now() }`, nil},
	{"coordinator/sim/x.go", `package sim; import (_ "math/rand/v2"; _ "` + module +
		`/coordinator/evidence")`, nil},

	{
		"coordinator/gateway/x.go", `package gateway; import _ "go.etcd.io/etcd/client/v3"`,
		[]string{"coordinator without etcd"},
	},
	{
		"coordinator/x_test.go", `package coordinator; import _ "go.etcd.io/etcd/client/v3"`,
		[]string{"coordinator without etcd"},
	},
	{"coordinator/x.go", `package coordinator; import _ "` + module + `/agent/protocol"`, nil},
	{"store/etcdstore/x.go", `package etcdstore; import _ "go.etcd.io/etcd/client/v3"`, nil},
	{
		"provider/process/x.go", `package process; import _ "go.etcd.io/etcd/client/v3"`,
		[]string{"etcd behind its adapters"},
	},

	{"agent/x.go", `package agent; import _ "` + module + `/store"`, []string{"agent knows no coordinator"}},
	{"agent/x.go", `package agent; import _ "` + module + `/store/memstore"`, []string{"agent knows no coordinator"}},
	{
		"agent/checks/x.go", `package checks; import _ "` + module + `/coordinator/gateway"`,
		[]string{"agent knows no coordinator"},
	},
	{"agent/x.go", `package agent; import _ "` + module + `/provider/process"`, []string{"agent knows no coordinator"}},
	{"agent/x.go", `package agent; import _ "go.etcd.io/etcd/client/v3"`, []string{"etcd behind its adapters"}},
	{"agent/x.go", `package agent; import _ "` + module + `/provider"`, nil},

	{
		"store/etcdstore/x.go", `package etcdstore; import _ "` + module + `/store/embedetcd"`,
		[]string{"adapters stand apart"},
	},
	{
		"provider/qemu/disk/x.go", `package disk; import _ "` + module + `/provider/process"`,
		[]string{"adapters stand apart"},
	},
	{"provider/qemu/x.go", `package qemu; import _ "` + module + `/provider/qemu/disk"`, nil},
	{"store/etcdstore/x_test.go", `package etcdstore; import _ "` + module + `/store/embedetcd"`, nil},

	{
		"coordinator/x.go", `package coordinator; import _ "` + module + `/store/memstore"`,
		[]string{"cmd chooses adapters"},
	},
	{
		"store/storetest/x.go", `package storetest; import _ "` + module + `/store/etcdstore"`,
		[]string{"cmd chooses adapters"},
	},
	{"coordinator/x_test.go", `package coordinator; import _ "` + module + `/store/memstore"`, nil},
	{"cmd/leasehold/x.go", `package main; import _ "` + module + `/store/etcdstore"`, nil},

	{
		"coordinator/x.go", `package coordinator; import _ "` + module + `/cmd/output"`,
		[]string{"nothing builds on cmd"},
	},
	{"tests/x_test.go", `package tests; import _ "` + module + `/cmd/output"`, nil},

	{"cmd/bench/crowd/x.go", `package crowd; import _ "` + module + `/coordinator/pki"`, nil},
	{
		"cmd/bench/crowd/x.go", `package crowd; import _ "` + module + `/coordinator/gateway"`,
		[]string{"a crowd knows what agents know"},
	},
	{
		"cmd/bench/crowd/wire/x.go", `package wire; import _ "` + module + `/store"`,
		[]string{"a crowd knows what agents know"},
	},
	{"cmd/bench/crowd/x_test.go", `package crowd; import _ "` + module + `/store"`, nil},
	{
		"cmd/services/x.go", `package services; import _ "` + module + `/cmd/bench/crowd/wire"`,
		[]string{"benches alone have crowds"},
	},
	{"cmd/cli/x.go", `package cli; import _ "` + module + `/cmd/bench/crowd"`, []string{"benches alone have crowds"}},
	{"cmd/bench/x.go", `package bench; import _ "` + module + `/cmd/bench/crowd"`, nil},

	{
		"coordinator/x.go", `package coordinator; import _ "github.com/alecthomas/kong"`,
		[]string{"kong and tint in cmd"},
	},
	{"agent/x_test.go", `package agent; import _ "github.com/lmittmann/tint"`, []string{"kong and tint in cmd"}},
	{"cmd/leasehold/x.go", `package main; import _ "github.com/alecthomas/kong"`, nil},
	{
		"coordinator/x.go", `package coordinator; import _ "github.com/prometheus/client_golang/prometheus"`,
		[]string{"prometheus in web"},
	},
	{"coordinator/web/x.go", `package web; import _ "github.com/prometheus/client_golang/prometheus"`, nil},
	{"cmd/cli/x.go", `package cli; import _ "charm.land/bubbletea/v2"`, []string{"one terminal program"}},
	{"cmd/top/x.go", `package top; import _ "charm.land/bubbletea/v2"`, nil},
	{"coordinator/view/x.go", `package view; import _ "net/http"`, []string{"views are made from memory"}},
	{
		"coordinator/web/x.go", `package web; import _ "github.com/miekg/dns"`,
		[]string{"xDS and DNS in their servers"},
	},
	{"coordinator/discovery/dnsserver/x.go", `package dnsserver; import _ "github.com/miekg/dns"`, nil},
	{"coordinator/web/x.go", `package web; import _ "go.yaml.in/yaml/v4"`, []string{"yaml in cmd"}},
	{"cmd/groupfile/x.go", `package groupfile; import _ "go.yaml.in/yaml/v4"`, nil},

	{"cmd/leasehold/x.go", `package main; import _ "log"`, []string{"log/slog alone"}},
	{"cmd/leasehold/x.go", `package main; import _ "log/slog"`, nil},

	{"coordinator/x.go", `package coordinator; import _ "testing"`, []string{"no tests in the product"}},
	{
		"agent/x.go", `package agent; import _ "` + module + `/provider/providertest"`,
		[]string{"no tests in the product"},
	},
	{"provider/providertest/x.go", `package providertest; import _ "testing"`, nil},
	{"coordinator/x.go", `package coordinator; import _ "` + module + `/coordinator/latest"`, nil},

	{"coordinator/utils/x.go", `package strs`, []string{"names say something"}},
	{"coordinator/x/x.go", `package common`, []string{"names say something"}},
	{"coordinator/manager.go", `package coordinator`, []string{"names say something"}},
	{"coordinator/helpers_test.go", `package coordinator`, []string{"names say something"}},
	{"coordinator/database.go", `package coordinator`, nil},

	{"agent/x_test.go", `package agent; import "time"; func f() { time.Sleep(1) }`, []string{"no sleep in tests"}},
	{"store/storetest/x.go", `package storetest; import "time"; var pause = time.Sleep`, []string{"no sleep in tests"}},
	{"agent/x_test.go", `package agent; import "time"; func f() { <-time.After(1) }`, nil},

	{
		"agent/x_test.go", `package agent; import "testing"; func TestX(t *testing.T) { t.Skip("later") }`,
		[]string{"no skipped tests"},
	},
	{
		"agent/x_test.go", `package agent; import "testing"; func f(tb testing.TB) { tb.SkipNow() }`,
		[]string{"no skipped tests"},
	},
	{
		"agent/x_test.go", `package agent; import "testing"; func TestX(t *testing.T) { if testing.Short() { return } }`,
		[]string{"no skipped tests"},
	},
	{
		"agent/x_test.go", `package agent; import "testing"; func TestX(t *testing.T) { var lines reader; lines.Skip(1) }`,
		nil,
	},

	{
		"cmd/cli/x.go", `package cli; var x = strings.HasPrefix(e.Why, "outdated")`,
		[]string{"nothing reads a reason out of a text"},
	},
	{
		"cmd/cli/x.go", `package cli; var x = requested.FindStringSubmatch(e.What)`,
		[]string{"nothing reads a reason out of a text"},
	},
	{
		"coordinator/review/x.go", `package review; var x = slices.ContainsFunc(e.Evidence, follows)`,
		[]string{"nothing reads a reason out of a text"},
	},
	{"coordinator/review/x.go", `package review; var x = slices.ContainsFunc(rules, e.Rule)`, nil},
	{"cmd/scenario/x.go", `package scenario; import "regexp"`, []string{"a simulation sums up by fields"}},
	{
		"coordinator/web/x.go", `package web; func x() { switch r { case "HEAL-2": } }`,
		[]string{"what shows decisions decides nothing by a rule's ID"},
	},
	{
		"cmd/foresee/x.go", `package cli; var x = strings.HasPrefix(b.Rule, "ROLL-")`,
		[]string{"nothing reads a reason out of a text", "what shows decisions decides nothing by a rule's ID"},
	},
	{
		"cmd/cli/x.go", `package cli; var x = e.Rule == "REC-16" || "SAFE-2" != e.Rule`,
		[]string{"what shows decisions decides nothing by a rule's ID"},
	},
	{
		"cmd/scenario/x.go", `package cli; func x() { switch r { case "HEAL-2", "HEAL-3": } }`,
		[]string{"what shows decisions decides nothing by a rule's ID"},
	},
	{
		"cmd/cli/x.go", `package cli; var x = map[string]int{"HEAL-2": 1}`,
		[]string{"what shows decisions decides nothing by a rule's ID"},
	},
	{
		"cmd/cli/x_test.go", `package cli; var x = strings.HasPrefix(e.Why, "outdated") || e.Rule == "REC-16"`,
		nil,
	},
	{
		"cmd/cli/x.go", `package cli; var x = problem{Rule: "SAFE-2", What: strings.ToUpper(e.What)}`,
		nil,
	},
	{
		"cmd/cli/x.go",
		`package cli; var x = slices.Contains(rules, b.Rule) || e.Why == "" || strings.TrimPrefix(r.Key, prefix(r.What)) == ""`,
		nil,
	},
	{"coordinator/reason/x.go", `package reason; import _ "` + module + `/store"`, nil},
	{"coordinator/reason/x.go", `package reason; import _ "os"`, []string{"reasons are made of records alone"}},
	{
		"coordinator/story/x.go", `package story; import _ "` + module + `/coordinator/plan"`,
		[]string{"reasons are made of records alone"},
	},
}

// TestImportsSimulated proves that the bans refuse what they must and nothing else, and that none
// has gone blind.
func TestImportsSimulated(t *testing.T) {
	refusing := map[string]bool{}
	for _, file := range simulated {
		f, err := parseSource(file.path, []byte(file.text))
		if err != nil {
			t.Errorf("%s: %q: %v", file.path, file.text, err)
			continue
		}
		var got []string
		for _, b := range bans {
			if len(b.find(f)) > 0 {
				got = append(got, b.name)
				refusing[b.name] = true
			}
		}
		if !slices.Equal(got, file.refused) {
			t.Errorf("%s: %q is refused by %q, should be by %q", file.path, file.text, got, file.refused)
		}
	}
	for _, b := range bans {
		if !refusing[b.name] {
			t.Errorf("no simulated file is refused by the ban %q: add one that proves it works", b.name)
		}
		if b.why == "" {
			t.Errorf("the ban %q gives no reason", b.name)
		}
	}
}
