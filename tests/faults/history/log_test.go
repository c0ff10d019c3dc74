package history

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatIsKeptIsReadAgainInTheOrderOfTime(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for path, times := range map[string][]Time{one: {1, 4, 9}, two: {2, 3, 10}} {
		l, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range times {
			more := l.More()
			l.Add(Event{At: at, Mark: &Mark{What: Begun}})
			<-more
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	torn, err := os.OpenFile(two, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := torn.WriteString(`{"at":11,"mark":`); err != nil {
		t.Fatal(err)
	}
	if err := torn.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := Read(one, two, filepath.Join(dir, "none"))
	if err != nil {
		t.Fatal(err)
	}
	var times []Time
	for _, e := range all {
		times = append(times, e.At)
	}
	if len(times) != 6 || times[0] != 1 || times[5] != 10 {
		t.Fatalf("read %v", times)
	}
	for i, at := range times[1:] {
		if at < times[i] {
			t.Fatalf("%v is not in order", times)
		}
	}
}

func TestTimeGoesOn(t *testing.T) {
	first := Now()
	if again := Now(); again.Sub(first) < 0 || first <= 0 {
		t.Fatalf("%d, then %d", first, again)
	}
}
