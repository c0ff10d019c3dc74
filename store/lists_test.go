package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
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
	all := declaredKinds(t)
	for kind, list := range map[string][]string{
		"BlockedKind":    texts(store.BlockedKinds),
		"Work":           texts(store.Works),
		"Counterfactual": texts(store.Counterfactuals),
		"CauseKind":      texts(store.CauseKinds),
		"FactKind":       texts(store.FactKinds),
		"ScaleStays":     texts(store.AllScaleStays),
	} {
		declared := all[kind]
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

// declaredKinds returns the values of all constants of package store that have a type of the
// package and a text, by the name of that type.
func declaredKinds(t *testing.T) map[string][]string {
	t.Helper()
	values := map[string][]string{}
	for _, name := range sources(t) {
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
				kind, found := typedTexts(t, s.(*ast.ValueSpec))
				values[kind] = append(values[kind], found...)
			}
		}
	}
	return values
}

func sources(t *testing.T) (names []string) {
	t.Helper()
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

// typedTexts returns the type and the texts of constants that have both.
func typedTexts(t *testing.T, spec *ast.ValueSpec) (kind string, texts []string) {
	t.Helper()
	of, ok := spec.Type.(*ast.Ident)
	if !ok {
		return "", nil
	}
	for _, v := range spec.Values {
		lit, ok := v.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return of.Name, texts
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
