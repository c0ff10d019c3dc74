package store

import (
	"errors"
	"reflect"
	"strconv"
	"testing"
	"time"
)

// Records read one after the other are what each is by itself, and the records of one group share
// what they were made from.
func TestInstanceSpecsReadWhatDecodeReads(t *testing.T) {
	web := DefaultGroup()
	web.Name, web.Provider, web.Workload.Run = "web", "mem", []string{"/bin/web", "--listen"}
	web.Vars, web.Template.Zones = map[string]string{"port": "80"}, []string{"a", "b"}
	web.Checks = []Check{{Name: "ready", HTTP: &HTTPCheck{Port: "80"}}}
	web.Complete()
	api := web
	api.Name, api.Workload.Run = "api", []string{"/bin/api"}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var values [][]byte
	for i, g := range []Group{web, api, web, web} {
		values = append(values, Encode(Instance{
			Schema: Schema, ID: "x", Group: g.Name, Slot: i, Phase: Running, Since: at, Spec: g.InstanceSpec(),
			Template: g.InstanceSpec().TemplateHash(),
			Drain:    &Drain{Token: "t"}, Last: Decision{Rule: "REC-3", Why: "slot was empty", At: at},
		}))
	}
	values = append(values, []byte(`{"schema":1,"id":"bare"}`), []byte(`{"schema":1,"id":"none","spec":null}`),
		[]byte(`{"schema":1,"spec":{"vars":{"a":"b"}},"unknown":[1]}`),
		[]byte(`{"schema":1,"id":"x","spec":{"vars":7}}`), []byte(`{"schema":1,"spec":{"vars":`),
		[]byte(`{"schema":2,"spec":{}}`), []byte(`[]`), nil)
	var specs InstanceSpecs
	var read []Versioned[Instance]
	for round := range 2 {
		for i, value := range values {
			kv := KV{Key: "/k", Value: value, Created: 3, Modified: Revision(4 + i), Lease: 5}
			got, err := specs.Decode(kv)
			want, wantErr := Decode[Instance](kv)
			if (err == nil) != (wantErr == nil) || errors.Is(err, ErrSchema) != errors.Is(wantErr, ErrSchema) {
				t.Errorf("round %d: %s: %v, by itself %v", round, value, err, wantErr)
			}
			if err == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("round %d: %s is\n%+v, by itself\n%+v", round, value, got, want)
			}
			read = append(read, got)
		}
	}
	if a, b := read[0].Record.Spec, read[2].Record.Spec; &a.Workload.Run[0] != &b.Workload.Run[0] {
		t.Error("two instances of one group do not share their spec")
	}
}

// specOf reads a record with one of many specs.
func (s *InstanceSpecs) specOf(t *testing.T, n int) InstanceSpec {
	t.Helper()
	g := Group{Provider: "p", Vars: map[string]string{"n": strconv.Itoa(n)}}
	got, err := s.Decode(KV{Value: Encode(Instance{Schema: Schema, Spec: g.InstanceSpec()})})
	if err != nil {
		t.Fatal(err)
	}
	return got.Record.Spec
}

func TestInstanceSpecsRemembersNoMoreThanItMay(t *testing.T) {
	var specs InstanceSpecs
	for i := range 2*maxSpecs + 10 {
		specs.specOf(t, i)
	}
	if n, older := len(specs.known), len(specs.older); n > maxSpecs || older > maxSpecs {
		t.Errorf("%d specs are remembered, and %d older ones", n, older)
	}
}

// Specs come and go with each edit. What no record has any more is forgotten, and what is in use is
// shared all the time.
func TestInstanceSpecsForgetsWhatIsNotRead(t *testing.T) {
	var specs InstanceSpecs
	first := specs.specOf(t, 0)
	most := 0
	for edit := 1; edit <= 1_500; edit++ {
		for range 5 { // the phases of one instance
			specs.specOf(t, edit)
		}
		if again := specs.specOf(t, 0); reflect.ValueOf(again.Vars).Pointer() != reflect.ValueOf(first.Vars).Pointer() {
			t.Fatalf("edit %d: a spec that is in use is not shared", edit)
		}
		most = max(most, len(specs.known)+len(specs.older))
	}
	if most > 900 {
		t.Errorf("%d of 1,500 specs are remembered", most)
	}
}
