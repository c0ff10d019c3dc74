package store

import (
	"errors"
	"reflect"
	"testing"
)

// Statuses read one after the other are what each is by itself, and share the spec of a group while
// it stays the same.
func TestGroupSpecsReadWhatDecodeReads(t *testing.T) {
	web := DefaultGroup()
	web.Name, web.Provider, web.Size = "web", "mem", 3
	web.Complete()
	larger := web
	larger.Size = 4
	status := func(g *Group, healthy int) []byte {
		return Encode(Status{Schema: Schema, Group: "web", Accepted: g, Healthy: healthy, State: GroupStarted})
	}
	values := [][]byte{
		status(&web, 1), status(&web, 2), status(&larger, 2), status(nil, 2), status(&larger, 3),
		[]byte(`{"schema":1,"accepted":null}`), []byte(`{"schema":1,"accepted":{"size":"many"}}`),
		status(&larger, 1), []byte(`{"schema":1,"accepted":{`), []byte(`{"schema":2,"accepted":{}}`), []byte(`[]`), nil,
	}
	var specs GroupSpecs
	var read []Versioned[Status]
	for i, value := range values {
		kv := KV{Key: "/status/web", Value: value, Created: 3, Modified: Revision(4 + i), Lease: 5}
		got, err := specs.Decode(kv)
		want, wantErr := Decode[Status](kv)
		if (err == nil) != (wantErr == nil) || errors.Is(err, ErrSchema) != errors.Is(wantErr, ErrSchema) {
			t.Errorf("%s: %v, by itself %v", value, err, wantErr)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s is\n%+v, by itself\n%+v", value, got, want)
		}
		read = append(read, got)
	}
	if read[0].Record.Accepted != read[1].Record.Accepted {
		t.Error("two statuses with the same spec do not share it")
	}
	other, err := specs.Decode(KV{Key: "/status/api", Value: values[0]})
	if err != nil || other.Record.Accepted == read[0].Record.Accepted {
		t.Errorf("another group shares the spec: %v", err)
	}
	if specs.Forget("/status/web"); len(specs.known) != 1 {
		t.Errorf("known are %d, want the other group alone", len(specs.known))
	}
}
