package store

import (
	"errors"
	"reflect"
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

func TestInstanceSpecsRemembersNoMoreThanItMay(t *testing.T) {
	var specs InstanceSpecs
	for i := range mostSpecs + 10 {
		g := Group{Provider: string(rune('a' + i%26)), RegistrationTimeout: Duration(i)}
		if _, err := specs.Decode(KV{Value: Encode(Instance{Schema: Schema, Spec: g.InstanceSpec()})}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(specs.known); n > mostSpecs {
		t.Errorf("%d specs are remembered", n)
	}
}
