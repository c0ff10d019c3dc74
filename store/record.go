package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Schema is the version of the records that this program writes and reads.
const Schema = 1

// ErrSchema: a record was written by a newer program.
var ErrSchema = errors.New("newer schema")

// Duration is a time.Duration that reads and writes as "1m30s".
type Duration time.Duration

// D returns the duration as the time package has it.
func (d Duration) D() time.Duration { return time.Duration(d) }

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration as a person would.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads "5s", "1m30s", "2h".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration like 5s, 1m30s or 2h", text)
	}
	*d = Duration(v)
	return nil
}

// Versioned is a record with the revisions of its key.
type Versioned[T any] struct {
	Record   T
	Key      string
	Created  Revision
	Modified Revision
	Lease    LeaseID
}

// Present reports whether there is such a record.
func (v Versioned[T]) Present() bool { return v.Modified != 0 }

// Unchanged returns the condition that the record is still as it was read: absent, if it was
// absent.
func (v Versioned[T]) Unchanged() Condition { return At(v.Key, v.Modified) }

// Decode reads a record of type T from a key's value. Unknown fields are tolerated (an older
// program reads what a newer one of the same schema wrote), a newer schema is not.
func Decode[T any](kv KV) (Versioned[T], error) {
	v := Versioned[T]{Key: kv.Key, Created: kv.Created, Modified: kv.Modified, Lease: kv.Lease}
	return v, decodeInto(kv, &v.Record)
}

func decodeInto(kv KV, record any) error {
	err := checkSchema(kv.Value)
	if err == nil {
		err = json.Unmarshal(kv.Value, record)
	}
	if err != nil {
		return &UnreadableError{Key: kv.Key, Err: err}
	}
	return nil
}

// UnreadableError means that a key's value is not a record of its kind (SAFE-16).
type UnreadableError struct {
	Key string
	Err error
}

func (e *UnreadableError) Error() string { return fmt.Sprintf("read %s: %s", e.Key, e.Err) }

func (e *UnreadableError) Unwrap() error { return e.Err }

// asWritten is how every record of ours begins: it need not be read twice.
var asWritten = fmt.Appendf(nil, `{"schema":%d,`, Schema)

func checkSchema(value []byte) error {
	schema, err := SchemaOf(value)
	if err != nil {
		return err
	}
	if schema > Schema {
		return fmt.Errorf("%w: it has %d, this program knows up to %d: upgrade it", ErrSchema, schema, Schema)
	}
	return nil
}

// SchemaOf returns the schema of a record.
func SchemaOf(value []byte) (int, error) {
	if bytes.HasPrefix(value, asWritten) {
		return Schema, nil
	}
	var head struct {
		Schema int `json:"schema"`
	}
	err := json.Unmarshal(value, &head)
	return head.Schema, err
}

// Encode writes a record as JSON that a person can read in etcdctl. A record of this package can
// always be written; a failure is a bug and panics.
func Encode(record any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(record); err != nil {
		panic(fmt.Sprintf("encode %T: %v", record, err))
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
