package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Lists of all values of a kind hold all that are declared: what renders them is tested on the
// lists.
func TestListsAreComplete(t *testing.T) {
	for kind, list := range map[string][]string{
		"BlockedKind":    texts(store.BlockedKinds),
		"Work":           texts(store.Works),
		"Counterfactual": texts(store.Counterfactuals),
	} {
		declared := constantsOf(t, kind)
		if len(declared) < 10 {
			t.Errorf("only %d constants of type %s were found", len(declared), kind)
		}
		slices.Sort(declared)
		slices.Sort(list)
		if !slices.Equal(declared, list) {
			t.Errorf("%s: listed %q, declared %q", kind, list, declared)
		}
	}
}

func texts[T ~string](list []T) (out []string) {
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

// constantsOf returns the values of all constants of a string type of package store.
func constantsOf(t *testing.T, kind string) (values []string) {
	t.Helper()
	for _, name := range []string{"record_blocked.go", "record_cause.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			for _, s := range decl.Specs {
				spec, ok := s.(*ast.ValueSpec)
				if !ok {
					continue
				}
				if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != kind {
					continue
				}
				for _, v := range spec.Values {
					text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, text)
				}
			}
		}
	}
	return values
}

// What cannot be derived from other keys is known as such, and each kind of record is read as what
// it is: a value that is none of its kind is said to be unreadable (SAFE-16).
func TestWhatIsReadable(t *testing.T) {
	durable := []string{
		store.KindShard, store.KindServed, store.KindGroups, store.KindStatic, store.KindStatus, store.KindSlots,
		store.KindInstances, store.KindJoined, store.KindSecrets,
	}
	if got := store.DurableKinds(); !slices.Equal(got, durable) {
		t.Errorf("durable are %v, want %v", got, durable)
	}
	clear(store.DurableKinds()) // a copy
	if got := store.DurableKinds(); !slices.Equal(got, durable) {
		t.Errorf("a caller changed the list: %v", got)
	}
	keys := store.KeysOf("test")
	for kind, record := range map[string]any{
		keys.Shard():                       store.Shard{},
		keys.Served():                      store.Served{},
		keys.Of(store.KindStatus) + "web":  store.Status{},
		keys.Of(store.KindSlots) + "web/1": store.Slot{},
		keys.Of(store.KindInstances) + "i": store.Instance{},
		keys.Of(store.KindJoined) + "i":    store.Joined{},
		keys.Of(store.KindSecrets) + "s":   store.Secret{},
		keys.Of(store.KindAlive) + "i":     store.Alive{},
		keys.Of(store.KindReports) + "i":   store.Report{},
		keys.Of(store.KindRequests) + "r":  store.Request{},
		keys.Of(store.KindStrays) + "i":    store.Stray{},
		keys.Of(store.KindReplicas) + "r":  store.Replica{},
		keys.Of(store.KindHosts) + "h":     store.HostToken{},
		keys.Of(store.KindLoads) + "h/web": store.Load{},
		keys.Of(store.KindDays) + "d/web":  store.Day{},
	} {
		if err := keys.Readable(store.KV{Key: kind, Value: store.Encode(record)}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		// The first field of each record that is no number, as one.
		of := reflect.TypeOf(record)
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name == "" || of.Field(i).Type.Kind() != reflect.String {
				continue
			}
			wrong := store.KV{Key: kind, Value: []byte(`{"schema": 1, "` + name + `": {"a": 1}}`)}
			if err := keys.Readable(wrong); err == nil {
				t.Errorf("%s: %s is read", kind, wrong.Value)
			}
			break
		}
	}
	for text, readable := range map[string]bool{`{"schema": 1, "size": "x"}`: true, `[]`: false, `{`: false} {
		err := keys.Readable(store.KV{Key: keys.Group("web"), Value: []byte(text)})
		if (err == nil) != readable {
			t.Errorf("a spec of %s: %v", text, err)
		}
	}
}
