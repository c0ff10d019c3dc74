package measure

import (
	"strings"
	"testing"
)

func TestMetrics(t *testing.T) {
	m, err := readMetrics(strings.NewReader(`# HELP a says nothing
a_total{method="Put",code="OK"} 3
a_total{method="Get",code="OK"} 4 1700000000
a_total_seconds 1e+03
b{text="it} is # odd"} 7
`))
	if err != nil {
		t.Fatal(err)
	}
	for want, got := range map[float64]float64{
		7: m.Sum("a_total"), 3: m.Sum("a_total", `method="Put"`),
		1000: m.Sum("a_total_seconds"), 0: m.Sum("c"),
	} {
		if got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if m.Sum("b") != 7 {
		t.Errorf("b: %v in %v", m.Sum("b"), m)
	}
	for _, bad := range []string{"a", "a x"} {
		if _, err := readMetrics(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
