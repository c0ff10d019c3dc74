package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// filled returns a T in which every field, at every depth, has a value that is not its zero, except
// Schema, which is 1.
func filled[T any]() T {
	var record T
	fill(reflect.ValueOf(&record).Elem(), 1)
	return record
}

func fill(v reflect.Value, n int) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, n, time.UTC)))
		return
	}
	if v.Type() == reflect.TypeFor[store.LeaseLost]() { // has a form of its own
		v.Set(reflect.ValueOf(store.LeaseLost{Do: store.LeaseLostRun, Run: []string{fmt.Sprintf("<%d & more>", n)}}))
		return
	}
	if v.Type() == reflect.TypeFor[store.FileChange]() {
		v.Set(reflect.ValueOf(store.FileChange{Do: store.FileRun, Run: []string{fmt.Sprintf("<%d & more>", n)}}))
		return
	}
	if v.Type() == reflect.TypeFor[store.ShardSettings]() { // whose ranges are judged when they are read
		age := store.Duration(time.Hour + time.Duration(n))
		v.Set(reflect.ValueOf(store.ShardSettings{
			ProviderPoll: age / 10, CreateRate: 2.5, CreateBurst: 3, OrphanGrace: age, ReconnectMin: age / 100,
			ReconnectMax: age / 50, EventsKept: age,
			EligibleAge: age, ForcedAge: 2 * age, Certificate: age, CompactAfter: &age,
		}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "Schema" {
				v.Field(i).SetInt(store.Schema)
				continue
			}
			fill(v.Field(i), n*7+i+1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n+1)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprintf("<%d & more>", n)) // what HTML would escape, and a person should read
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Float64:
		v.SetFloat(float64(n) + 0.5)
	case reflect.Interface: // a value of any shape, as JSON reads it
		v.Set(reflect.ValueOf(map[string]any{"list": []any{fmt.Sprintf("<%d>", n), float64(n), true}}))
	default:
		panic("a record has a field of kind " + v.Kind().String())
	}
}

// comesBack checks that a record is read as it was written, also when it is empty, and that a newer
// one is refused.
func comesBack[T any](t *testing.T) {
	t.Run(reflect.TypeFor[T]().Name(), func(t *testing.T) {
		for name, record := range map[string]T{"filled": filled[T](), "zero": *new(T)} {
			value := store.Encode(record)
			kv := store.KV{Key: "/k", Value: value, Created: 3, Modified: 5, Lease: 7}
			got, err := store.Decode[T](kv)
			if err != nil {
				t.Fatal(err)
			}
			if shard, ok := any(&record).(*store.Shard); ok {
				shard.Settings = shard.Settings.WithDefaults() // what is not set is not written
			}
			if !reflect.DeepEqual(got.Record, record) {
				t.Errorf("%s: read %+v, was %+v", name, got.Record, record)
			}
			if got.Key != "/k" || got.Created != 3 || got.Modified != 5 || got.Lease != 7 || !got.Present() {
				t.Errorf("revisions are lost: %+v", got)
			}
			if got.Unchanged() != store.Unchanged(kv) {
				t.Errorf("condition %+v", got.Unchanged())
			}
			if strings.ContainsAny(string(value), "\n") || strings.Contains(string(value), `\u003c`) {
				t.Errorf("not for people: %s", value)
			}
		}
		if _, err := store.Decode[T](store.KV{Key: "/k", Value: []byte(`{"schema": 2}`)}); !errors.Is(err,
			store.ErrSchema) ||
			!strings.Contains(err.Error(), "/k") || !strings.Contains(err.Error(), "upgrade") {
			t.Errorf("a newer schema: %v", err)
		}
		if _, err := store.Decode[T](store.KV{
			Key:   "/k",
			Value: []byte(`{"schema": 1, "from_the_future": [1]}`),
		}); err != nil {
			t.Errorf("an unknown field: %v", err)
		}
		for _, wrong := range []string{"", "{", "[]", `{"schema": "1"}`} {
			if _, err := store.Decode[T](store.KV{Key: "/k", Value: []byte(wrong)}); err == nil ||
				!strings.Contains(err.Error(), "/k") {
				t.Errorf("read %q: %v", wrong, err)
			}
		}
	})
}

func TestRecordsComeBack(t *testing.T) {
	comesBack[store.Shard](t)
	comesBack[store.Served](t)
	comesBack[store.Leader](t)
	comesBack[store.Replica](t)
	comesBack[store.Group](t)
	comesBack[store.Instance](t)
	comesBack[store.Slot](t)
	comesBack[store.Alive](t)
	comesBack[store.Stray](t)
	comesBack[store.Report](t)
	comesBack[store.Request](t)
	comesBack[store.JournalEntry](t)
	comesBack[store.Status](t)
}

func TestAbsentRecord(t *testing.T) {
	v := store.Versioned[store.Slot]{Key: "/k"}
	if v.Present() || v.Unchanged() != store.Absent("/k") {
		t.Errorf("a record that is not there: %+v", v.Unchanged())
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1m30s": 90 * time.Second, "0s": 0,
		"2h": 2 * time.Hour,
	} {
		var d store.Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.D() != want {
			t.Errorf("read %s: %s, %v", text, d, err)
		}
		again, err := d.MarshalText()
		var back store.Duration
		if err != nil || back.UnmarshalText(again) != nil || back != d {
			t.Errorf("%s is written %s, %v", text, again, err)
		}
	}
	for _, wrong := range []string{"", "5", "five", "5 s"} {
		if err := new(store.Duration).UnmarshalText([]byte(wrong)); err == nil || !strings.Contains(err.Error(), "5s") {
			t.Errorf("read %q: %v", wrong, err)
		}
	}
}
