package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every unit is started again however often it fails. By default systemd gives up after five quick
// failures: a disk that cannot be read for some seconds would end an agent until an operator starts
// it, and its workload would run unguarded.
//
// proves DAY-4
func TestUnitsAreStartedAgainHoweverOftenTheyFail(t *testing.T) {
	units, err := filepath.Glob("../packaging/*.service")
	if err != nil || len(units) != 3 {
		t.Fatalf("%v, units are %q", err, units)
	}
	for _, name := range append(units, "../provider/userdata/install.sh") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		unit, rest, _ := strings.Cut(string(text), "\n[Service]\n")
		_, unit, _ = strings.Cut(unit, "[Unit]\n")
		service, _, _ := strings.Cut(rest, "\n[Install]\n")
		if !strings.Contains(unit+"\n", "\nStartLimitIntervalSec=0\n") || !strings.Contains(service, "\nRestart=always\n") {
			t.Errorf("%s: systemd gives up after a few failures", name)
		}
	}
}
