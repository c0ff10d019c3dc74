package cli

import "testing"

func TestCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 failures", 1: "1 failure", 2: "2 failures"} {
		if got := counted(n, "failure", "failures"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for want, got := range map[string]string{
		"1 instance is": instancesAre(1, 1), "2 instances is": instancesAre(2, 1),
		"3 instances are": instancesAre(3, 2), "1 is": isAre(1), "0 are": isAre(0),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
