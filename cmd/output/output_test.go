package output

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

func TestTableOnTerminalAndPiped(t *testing.T) {
	tab := Table{Columns: []Column{
		{Title: "NAME"},
		{Title: "N", Right: true},
		{Title: "WHY", Wide: true},
		{Title: "AGE"},
	}}
	tab.Add("web", "12", "a\tb\nc\x1b[31m", "6d")
	tab.Add("frontend", "3", "", "41s")
	for _, c := range []struct {
		name     string
		terminal bool
		wide     bool
		want     string
	}{
		{"terminal", true, false, "NAME       N  AGE\nweb       12  6d\nfrontend   3  41s\n"},
		{"piped", false, false, "NAME\tN\tAGE\nweb\t12\t6d\nfrontend\t3\t41s\n"},
		{"piped wide", false, true, "NAME\tN\tWHY\tAGE\nweb\t12\ta b c?[31m\t6d\nfrontend\t3\t\t41s\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := tab.Write(Screen{W: &b, Terminal: c.terminal}, c.wide); err != nil {
				t.Fatal(err)
			}
			if b.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", b.String(), c.want)
			}
		})
	}
}

// A row that is wider than the terminal loses the end of the cell that may be cut, and nothing
// else; with -o wide and in a pipe nothing is lost.
func TestTableIsCutToTheTerminal(t *testing.T) {
	tab := Table{Columns: []Column{{Title: "NAME"}, {Title: "NOW", Cut: true}, {Title: "AGE"}}}
	tab.Add("web", "rolling, 2 slots flapping", "6d")
	tab.Add("api", "-", "41s")
	for _, c := range []struct {
		name   string
		screen Screen
		wide   bool
		want   string
	}{
		{
			"fits",
			Screen{Terminal: true, Width: 36},
			false,
			"NAME  NOW                        AGE\nweb   rolling, 2 slots flapping  6d\napi   -                          41s\n",
		},
		{
			"one less",
			Screen{Terminal: true, Width: 35},
			false,
			"NAME  NOW                       AGE\nweb   rolling, 2 slots flappi…  6d\napi   -                         41s\n",
		},
		{
			"narrow",
			Screen{Terminal: true, Width: 10},
			false,
			"NAME  NOW           AGE\nweb   rolling, 2 …  6d\napi   -             41s\n",
		},
		{
			"wide",
			Screen{Terminal: true, Width: 10},
			true,
			"NAME  NOW                        AGE\nweb   rolling, 2 slots flapping  6d\napi   -                          41s\n",
		},
		{"piped", Screen{Width: 10}, false, "NAME\tNOW\tAGE\nweb\trolling, 2 slots flapping\t6d\napi\t-\t41s\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			c.screen.W = &b
			if err := tab.Write(c.screen, c.wide); err != nil {
				t.Fatal(err)
			}
			if b.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", b.String(), c.want)
			}
		})
	}
}

// Where cutting is not enough, columns that can be spared are left out, the highest number first.
func TestTableLeavesOutSpareColumns(t *testing.T) {
	tab := Table{Columns: []Column{
		{Title: "NAME"}, {Title: "NOW", Cut: true}, {Title: "ZONE", Spare: 1}, {Title: "SINCE", Spare: 2}, {Title: "AGE"},
	}}
	tab.Add("web", "rolling, 2 slots flapping", "local", "41s", "6d")
	for width, want := range map[int]string{
		80: "NAME  NOW                        ZONE   SINCE  AGE\n" +
			"web   rolling, 2 slots flapping  local  41s    6d\n",
		37: "NAME  NOW           ZONE   SINCE  AGE\nweb   rolling, 2 …  local  41s    6d\n",
		36: "NAME  NOW                 ZONE   AGE\nweb   rolling, 2 slots …  local  6d\n",
		29: "NAME  NOW                 AGE\nweb   rolling, 2 slots …  6d\n",
		10: "NAME  NOW           AGE\nweb   rolling, 2 …  6d\n",
	} {
		var b bytes.Buffer
		if err := tab.Write(Screen{W: &b, Terminal: true, Width: width}, false); err != nil || b.String() != want {
			t.Errorf("%d columns: %v, got\n%s\nwant\n%s", width, err, b.String(), want)
		}
	}
	var b bytes.Buffer
	err := tab.Write(Screen{W: &b, Terminal: true, Width: 10}, true)
	if err != nil || !strings.Contains(b.String(), "SINCE") {
		t.Errorf("-o wide: %v, got\n%s", err, b.String())
	}
}

// A text is no wider than the terminal, and easy to read on a wide one.
func TestTextIsWrappedToTheTerminal(t *testing.T) {
	for width, want := range map[int]int{0: 80, 200: 80, 60: 60, 10: 40} {
		var b strings.Builder
		WriteWrapped(&b, Screen{Terminal: true, Width: width}, "note: ", strings.Repeat("what happened ", 20))
		longest := 0
		for line := range strings.Lines(b.String()) {
			longest = max(longest, len(strings.TrimSuffix(line, "\n")))
		}
		if longest > want || longest < want-14 {
			t.Errorf("%d columns: the longest line has %d:\n%s", width, longest, b.String())
		}
	}
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		-time.Hour: "0s", 41 * time.Second: "41s", 3 * time.Minute: "3m", 3*time.Minute + 2*time.Second: "3m2s",
		31*time.Minute + 2*time.Second: "31m", 2*time.Hour + 14*time.Minute: "2h14m", 30 * time.Hour: "30h",
		6 * 24 * time.Hour: "6d",
	} {
		if got := Age(now, now.Add(-ago)); got != want {
			t.Errorf("age of %s: got %s, want %s", ago, got, want)
		}
	}
	if got := Age(now, time.Time{}); got != "-" {
		t.Errorf("age of never: got %s", got)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 20 << 20: "20 MiB", 1 << 40: "1.0 TiB",
		1<<64 - 1: "16 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d bytes: got %s, want %s", n, got, want)
		}
	}
}

func TestYAMLKeepsOrderAndTypes(t *testing.T) {
	raw := json.RawMessage(`{"z":"true","a":[1,"2",{"b":null}],"on":"5s","empty":{},"none":[],"text":"a: b #c"}`)
	var b bytes.Buffer
	if err := YAML(&b, raw); err != nil {
		t.Fatal(err)
	}
	if z, a := strings.Index(b.String(), "z:"), strings.Index(b.String(), "a:"); z != 0 || a < z {
		t.Errorf("order lost:\n%s", b.String())
	}
	var got map[string]any
	if err := yaml.Load(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got["z"] != "true" || got["on"] != "5s" || got["text"] != "a: b #c" || got["a"].([]any)[1] != "2" ||
		got["a"].([]any)[0] != 1 {
		t.Errorf("types lost: %#v\n%s", got, b.String())
	}
}
