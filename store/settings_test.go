package store_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

func readSettings(t *testing.T, text string) store.ShardSettings {
	t.Helper()
	var s store.ShardSettings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func refusedNames(s store.ShardSettings) string {
	var names []string
	for _, e := range s.Refused {
		names = append(names, e.Path)
	}
	return strings.Join(names, " ")
}

// proves REC-20
func TestBoundsOfSettings(t *testing.T) {
	tests := map[string]struct{ good, bad []string }{
		"provider_poll":   {[]string{"1s", "10m"}, []string{"0s", "-1s", "999ms", "10m1s", "soon", ""}},
		"create_rate":     {[]string{"0.01", "1000"}, []string{"0", "-1", "0.001", "1001", "many", "1e9"}},
		"create_burst":    {[]string{"1", "1000"}, []string{"0", "-1", "1001", "1.5", "010", "x"}},
		"orphan_grace":    {[]string{"1s", "720h"}, []string{"0", "-1s", "720h1s"}},
		"reconnect_min":   {[]string{"100ms", "30s"}, []string{"0s", "99ms", "1m1s"}},
		"reconnect_max":   {[]string{"1s", "5m"}, []string{"0s", "999ms", "5m1s"}},
		"events_kept":     {[]string{"1m", "8760h"}, []string{"0s", "59s", "8760h1s"}},
		"days_kept":       {[]string{"24h", "87600h"}, []string{"0s", "23h59m", "87600h1s"}},
		"eligible_age":    {[]string{"0", "1m", "87600h"}, []string{"-1s", "59s", "87600h1s"}},
		"forced_age":      {[]string{"0", "1m", "87600h"}, []string{"-1s", "59s", "87600h1s"}},
		"certificate":     {[]string{"5s", "8760h"}, []string{"0s", "4s", "8760h1s"}},
		"limit_instances": {[]string{"0", "1", "1000000"}, []string{"-1", "1000001", "x"}},
		"limit_by_provider": {[]string{"none", "ec2:100", "lxd:0,ec2:5"}, []string{
			"ec2", "ec2:-1", "ec2:1,ec2:2", ":5",
			"ec2:1000001",
		}},
		"limit_by_label": {[]string{"none", "team=shop:50", "team=a:b:50"}, []string{"team=shop", "team=shop:x"}},
		"budget_groups":  {[]string{"none", "shop:1", "a:0,b:5"}, []string{"shop", "shop:-1", "a:1,a:2"}},
		"compact_after":  {[]string{"0", "1m", "8760h"}, []string{"-1s", "59s", "8760h1s"}},
	}
	for _, one := range store.Settings {
		for _, value := range tests[one.Name].good {
			s := store.DefaultShardSettings()
			if err := s.Set(one.Name, value); err != nil || len(s.Wrong()) > 0 {
				t.Errorf("%s=%s: %v %v", one.Name, value, err, s.Wrong())
			}
			if back := readSettings(t, string(store.Encode(s))); !reflect.DeepEqual(back, s) {
				t.Errorf("%s=%s: read back %+v, was %+v", one.Name, value, back, s)
			}
		}
		if len(tests[one.Name].bad) == 0 {
			t.Errorf("no bounds of %s are tested", one.Name)
		}
		for _, value := range tests[one.Name].bad {
			s := store.DefaultShardSettings()
			err := s.Set(one.Name, value)
			if err == nil || !strings.Contains(err.Error(), one.Name+": "+value+": must be "+one.Allowed) ||
				!reflect.DeepEqual(s, store.DefaultShardSettings()) {
				t.Errorf("%s=%s: %v, %+v", one.Name, value, err, s)
			}
			stored, _ := json.Marshal(value)
			if json.Valid([]byte(value)) && value != "0" {
				stored = []byte(value)
			}
			text := fmt.Sprintf(`{%q:%s}`, one.Name, stored)
			s = readSettings(t, text)
			if refusedNames(s) != one.Name {
				t.Errorf("%s: refused is %q", text, refusedNames(s))
			}
			if again := string(store.Encode(s)); !strings.Contains(again, strings.Trim(text, "{}")) {
				t.Errorf("%s is written back as %s", text, again)
			}
			s.Refused = nil
			if one.Value(s) != one.Default() {
				t.Errorf("%s: in force is %s", text, one.Value(s))
			}
		}
	}
}

// What is refused leaves what was in force: of each setting by itself, and of both where one does
// not fit beside the other.
//
// proves REC-20
func TestRefusedSettingsStayAsTheyWere(t *testing.T) {
	last := store.DefaultShardSettings()
	last.ProviderPoll, last.OrphanGrace = store.Duration(9*time.Second), store.Duration(9*time.Minute)
	last.ReconnectMin, last.ReconnectMax = store.Duration(2*time.Second), store.Duration(20*time.Second)
	for _, tt := range []struct{ stored, refused, min, max, poll string }{
		{`{}`, "", "1s", "30s", "5s"}, // absent: the default, whatever was
		{`{"provider_poll":"0s","orphan_grace":"1h"}`, "provider_poll", "1s", "30s", "9s"},
		{`{"provider_poll":{"x":1}}`, "provider_poll", "1s", "30s", "9s"},
		{`{"reconnect_min":"40s","reconnect_max":"35s"}`, "reconnect_min reconnect_max", "2s", "20s", "5s"},
		{`{"reconnect_min":"40s"}`, "reconnect_min reconnect_max", "2s", "20s", "5s"},
		{`{"reconnect_max":"-1s","reconnect_min":"25s"}`, "reconnect_max reconnect_min", "2s", "20s", "5s"},
		{`{"reconnect_max":"-1s","reconnect_min":"3s"}`, "reconnect_max", "3s", "20s", "5s"},
		{`{"tomorrow":7,"provider_poll":null}`, "", "1s", "30s", "5s"},
	} {
		read := readSettings(t, tt.stored)
		s := read.After(last)
		if refusedNames(s) != tt.refused || s.ReconnectMin.String() != tt.min || s.ReconnectMax.String() != tt.max ||
			s.ProviderPoll.String() != tt.poll {
			t.Errorf("%s: refused %q, in force %+v", tt.stored, refusedNames(s), s)
		}
		for _, err := range s.Wrong() {
			t.Errorf("%s: in force is what is wrong: %v", tt.stored, err)
		}
	}
	s := readSettings(t, `{"provider_poll":"0s","tomorrow":7}`)
	if err := s.Set("provider_poll", "3s"); err != nil || len(s.Refused) > 0 {
		t.Errorf("set again: %v, %+v", err, s.Refused)
	}
	if text := string(store.Encode(s)); !strings.Contains(text, `"provider_poll":"3s"`) ||
		!strings.Contains(text, `"tomorrow":7`) {
		t.Errorf("written as %s", text)
	}
	if err := s.Set("povider_poll", "3s"); err == nil {
		t.Error("an unknown setting is set")
	}
}
